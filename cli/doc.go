// Package cli holds the commands of the one binary.
//
// It owns flags, help texts, what is printed for people and for scripts (-o json),
// progress and exit codes: 0 for success, 1 for a failure, 2 for a call that was
// wrong. It must not know how a process is assembled: the roles and the catalog of
// jobs come in as values ([Roles]) from package daemon.
//
// Invariants:
//
//  1. What a script reads goes to stdout; progress, logs and errors go to stderr.
//  2. Colours and moving lines only on a terminal.
//  3. Every error says what, where, and, where we know it, what to do.
//
// Goroutines: those that watch child processes of the demo, in a group of its own.
// No locks. Read root.go, then the command's file.
package cli
