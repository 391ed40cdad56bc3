// Package planted holds the names of bugs that can be put into Weir on purpose, so
// that the simulator can prove that it would find them.
//
// It owns [Is], which the places of the bugs ask, and the list [Bugs]. It must not
// know what a bug does. Without the build tag planted, Is is constant false and the
// compiler removes what it guards: no released binary contains a bug of these.
//
// A place reads
//
//	if planted.Is(planted.NotifyBeforeLink) { ... }
//
// and a test built with the tag calls [Choose]. At most one bug is chosen at a time.
//
// No goroutines; the choice is one atomic. Read bugs.go; what each bug is and what
// finds it is in docs/testing.md.
package planted
