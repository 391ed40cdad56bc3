// Package chanstate writes what unaligned checkpoints capture of channels.
//
// It owns the life of a checkpoint's channel state on a TaskManager: who has
// captured what, which subtasks share a file, when it is complete, who learns of
// which failure ([Writer]); and the copies of captured bytes, bounded, and the
// goroutine that writes them ([Groups], [Subtask]). It must not know channels,
// buffers, barriers, or what the bytes mean; the format of the file is
// snapshotmeta's.
//
// A TaskManager has one [Groups]; each task joins it and is a [Subtask] of a group
// of its job:
//
//	s, err := groups.Join(chanstate.Options{...})
//	s.Start(7, "chk-7")                       // at the trigger
//	s.Input(7, edge, producer, base, bytes)   // copies at once
//	s.Output(7, edge, consumer, base, bytes)
//	s.FinishInput(7); s.FinishOutput(7)       // in any order
//	s.Abort(7, cause)                         // or give it up
//	s.Close()                                 // when the task ends
//
// Each Start that returned no error is answered by one call of Options.Done, unless
// Close comes first.
//
// Invariants:
//
//  1. Every start is answered once, with handles only after the file is durable.
//  2. Per group at most one checkpoint captures. A newer start fails an older one
//     that still does. Ids grow.
//  3. If one subtask fails, so do all that have bytes in the same file; the one to
//     blame is given the cause, the others CHANNEL_STATE_SHARED_STREAM_EXCEPTION.
//  4. Where nothing was captured there is no file, and no wait for others.
//  5. A group holds at most Options.Memory bytes. What does not fit fails the
//     checkpoint, never the flow.
//
// The file of a group is complete when all its subtasks have started and ended, so one
// that takes no part in a checkpoint that others started says so by Abort, or by Close.
//
// Goroutines: chanstate/writer, one per group, by leader and job; it alone does I/O and
// calls Done. Two locks: that of Groups is taken before that of a group, a leaf. The
// core (event.go, action.go, step.go, writer.go) is pure. Read those, then group.go and
// worker.go. The rules are those of behaviour §20.
package chanstate
