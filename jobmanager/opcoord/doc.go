// Package opcoord keeps the events that an operator's coordinator (for example a
// source's enumerator) sends to its subtasks consistent with checkpoints: an event
// is before a checkpoint on both sides, or after it on both.
//
// It owns [Holder], one for each operator with a coordinator, and its parts, one
// [EventGate] for each subtask. It must not know the coordinator's logic, nor how
// events travel.
//
// jobmaster.Core steps a Holder with what the coordinator's goroutine wants to
// send, with what subtasks answer, and with the life of checkpoints:
//
//	CheckpointRequested → SnapshotCoordinator → SnapshotTaken → Snapshotted
//
// From SnapshotTaken until the subtask's BarrierSent its gate is closed, and what
// is sent to it waits in the gate.
//
// Invariants (behaviour §24):
//
//  1. Events to one attempt are sent in the order the coordinator gave them.
//  2. A snapshot is reported only when every event sent before it is confirmed.
//  3. An event given after SnapshotTaken of a checkpoint is not sent before the
//     subtask's barrier of that checkpoint, or its abort.
//  4. An event whose delivery fails while its attempt runs fails that attempt: no
//     event is lost silently.
//  5. Each CheckpointRequested is answered by one Snapshotted or SnapshotFailed,
//     unless its abort came first.
//
// Pure: no goroutine, lock, clock or I/O. Read event.go, action.go, holder.go, then
// event_gate.go.
package opcoord
