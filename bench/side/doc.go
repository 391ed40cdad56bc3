// Package side runs one side of a comparison in a process of its own, so that the
// heap and the garbage of one do not slow the other.
//
// It owns [Process], a child that is this binary again, and [Serve], the child's
// body: a number on standard input asks for a sample of as many units, and a line of
// JSON answers it. It must not know what is measured.
//
// A program starts a process for each side, samples them in turn and stops them. A
// child dies with its parent.
//
// No locks; exec's goroutines only. Read side.go.
package side
