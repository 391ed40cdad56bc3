// Package input is the input side of a task: what the gates bring, cut into batches
// of records, aligned, and handed to the task in the order in which it must act.
//
// It owns [CheckpointedGate], which joins the input gates of a task with the barrier
// handler, the watermark valve and a cutter per channel, and [Meter], which knows how
// many bytes were processed when. It must not know operators' code, how a snapshot
// is taken, or how buffers travel.
//
// The task makes a CheckpointedGate of its gates and a [Sink] and calls
// [CheckpointedGate.Poll] whenever it may process input. Each call does one thing: it
// goes on with a suspended batch, or cuts and hands over the next one, or acts on one
// event. It returns false when there is nothing to do until a gate wakes the task.
// [CheckpointedGate.PollPriority] acts on barriers that overtake, at any time between
// two records.
//
// What was in flight in a snapshot comes first: [CheckpointedGate.Recover].
//
// Invariants:
//
//  1. Elements of one channel reach the sink in order, each once. A suspended batch
//     is finished before anything else is looked at, its channel's events included, but
//     for those that overtake.
//  2. Batches hold records of one channel only. What a barrier separates is never in
//     one batch.
//  3. Payloads alias a garbage-collected copy of the segment, or, if the chain
//     borrows, the segment itself, which is then held until the batch is done
//     (DECISIONS 22).
//  4. Trigger reaches the sink before any channel is resumed (DECISIONS 11).
//  5. Bytes count as processed when their records have been, not when they were
//     polled.
//  6. Bytes that are no elements give a [*ChannelError], never a panic.
//  7. What a channel brought before its barrier of an unaligned checkpoint was processed
//     before the trigger or is captured after it, whole and in order (behaviour §19).
//  8. No sender stays stopped behind a barrier that was announced and is of no use any more.
//
// A record costs no allocation, no lock and no look at the clock; a segment costs
// one allocation (none if the chain borrows), a batch one look at the clock.
//
// No goroutines, no locks: for the task's goroutine; counters are atomic. Read
// checkpointed_gate.go, then events.go, capture.go, recovery.go, meter.go, history.go.
package input
