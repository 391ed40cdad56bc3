// Package barrier decides what a task does with the barriers that arrive on its
// input channels: which channels to block, when the snapshot starts, when a
// checkpoint is given up.
//
// It owns the alignment of one task, all gates together: a [Handler], fed with
// events, answers with actions. It must not know buffers, gates, the network,
// how a snapshot is taken, or what time it is.
//
// The owner makes a handler with [New], numbers the channels of all gates from 0,
// calls [Handler.Step] for each barrier, cancellation marker, announcement and end
// of partition in the order in which the task processes them, and carries out
// the actions in the order of the list before it takes the next element:
//
//	for _, a := range handler.Step(time.Now(), ev) {
//		switch a := a.(type) {
//		case barrier.Trigger: // take the snapshot
//		case barrier.Block:   // take nothing more from this channel
//		case barrier.Resume:  // let the channel's sender go on
//		case barrier.Abort:   // decline, and tell everybody downstream
//		case barrier.Note:    // for a debug log
//		}
//	}
//
// A channel is blocked from its barrier on. Its sender has stopped behind the
// barrier by itself (behaviour §18); Resume makes it go on.
//
// Invariants:
//
//  1. A checkpoint is triggered at most once, and never after it was aborted.
//     Triggered ids only grow.
//  2. Trigger is the first action of its list, so nothing that follows a barrier
//     can be in a snapshot (DECISIONS 11).
//  3. While no checkpoint is pending, no channel is blocked. While one is, at
//     least one open channel is not, so no order of arrivals ends in a deadlock.
//  4. Every barrier that arrives on a channel is followed by exactly one Resume of
//     that channel, unless the channel ends first.
//  5. Step is total: any event in any state is answered, one that changes nothing by
//     a Note or a Resume.
//
// Pure: no goroutine, lock, clock or I/O; for the task's goroutine. Read
// event.go, action.go, then step.go; handler.go holds the state. The rules are
// those of behaviour §15.2 and §15.3.
package barrier
