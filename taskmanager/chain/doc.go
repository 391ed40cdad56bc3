// Package chain is the frame around the operators that are fused in one task.
//
// It owns two things: [Timers], the processing-time timers of one keyed operator,
// and [Guarded], which turns what goes wrong in an operator into a
// [weir.Failure]. It must not know frames, gates, checkpoints or when it is
// called.
//
// Timers are entries of a table of the operator's keyed backend (DECISIONS 25): key,
// and the time as the namespace. The heap in memory is only an index of it. It is
// rebuilt after a restore, so a snapshot knows nothing of it. The task asks
// [Timers.Next] when to wake and calls [Timers.Fire] when that time has come.
//
// Invariants:
//
//  1. A timer is set if and only if its entry is in the table. The index may have
//     entries more (of deleted timers), never less.
//  2. A timer is removed before it fires, and fires once.
//  3. Timers fire in the order of their times; equal ones in the order of hash and
//     key, the same after a restore.
//  4. The index is at most twice as large as the table, and some.
//  5. Registering and firing allocate nothing, growth apart.
//
// No goroutines and no locks: everything is for the task's goroutine. Read
// timers.go, then index.go and guarded.go.
package chain
