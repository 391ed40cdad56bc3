// Package barrier decides what a task does with the barriers that arrive on its
// input channels: which channels to block, which to record, when the snapshot
// starts, when a checkpoint is given up.
//
// It owns the alignment of one task, all gates together: a [Handler], fed with
// events, answers with actions. It must not know buffers, gates, the network,
// how a snapshot is taken, how captured bytes are kept, or what time it is.
//
// The owner makes a handler with [New], numbers the channels of all gates from 0,
// calls [Handler.Step] for each barrier, cancellation marker, announcement and end
// of partition in the order in which the task processes them, and carries out
// the actions in the order of the list before it takes the next element:
//
//	for _, a := range handler.Step(time.Now(), ev) {
//		switch a := a.(type) {
//		case barrier.Trigger:       // take the snapshot
//		case barrier.Block:         // take nothing from behind this channel's barrier
//		case barrier.Resume:        // let the channel's sender go on
//		case barrier.Record:        // capture what the channel holds and brings
//		case barrier.StopRecording: // until here
//		case barrier.Recorded:      // all input of the checkpoint is captured
//		case barrier.ToHead:        // let an announced barrier overtake
//		case barrier.ArmTimer:      // give Timer back after that time
//		case barrier.CancelTimer:
//		case barrier.Abort:         // decline, and tell everybody downstream
//		case barrier.Note:          // for a debug log
//		}
//	}
//
// A channel is blocked from a barrier on that stopped its sender: one that is neither
// unaligned nor at least once (behaviour §15.7). The sender has stopped by itself
// (behaviour §18); Resume makes it go on.
//
// A checkpoint that is triggered as unaligned is pending until its last barrier is in:
// each channel is recorded from Record to StopRecording. With Recorded its channel state
// is whole; an Abort before makes it void.
//
// Invariants:
//
//  1. A checkpoint is triggered at most once, and never after it was aborted.
//     Triggered ids only grow.
//  2. Trigger is the first action of its list, so nothing that follows a barrier
//     can be in a snapshot (DECISIONS 11).
//  3. While no checkpoint is pending, no channel is blocked or recorded and no timer
//     is armed. While one is, at least one open channel is not blocked, so no order of
//     arrivals ends in a deadlock.
//  4. Every barrier that stopped its sender is followed by exactly one Resume of that
//     channel, unless the channel ends first.
//  5. Each Trigger with the alignment Unaligned is followed by one Recorded or one Abort
//     of its id. What was processed at the Trigger and what was recorded is together
//     exactly what was sent before the barriers.
//  6. At most one timer is armed; each ends by a Timer event or by CancelTimer.
//  7. Step is total: any event in any state is answered, one that changes nothing by
//     a Note or a Resume.
//
// Pure: no goroutine, lock, clock or I/O; for the task's goroutine. Read
// event.go, action.go, then step.go and overtake.go (one machine for aligned, unaligned
// and forced barriers, whose state is in exactly_once.go); tracker.go is the other
// machine. The rules are those of behaviour §15 and §17.
package barrier
