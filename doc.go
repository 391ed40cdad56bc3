// Package weir holds the nouns of the system: identities, key groups, barriers,
// checkpoint options, state handles and reasons for failure.
//
// It owns values and pure functions over them; it starts nothing, opens nothing
// and imports nothing of ours, so that every other package may speak of a
// [CheckpointID] or a [KeyGroupRange] without importing a service.
//
// # How the nouns act together
//
// A job is an entry point and its parameters. The JobManager builds its logical
// graph, compiles it into vertices and gives every subtask of a vertex an
// execution attempt, an [AttemptID]. Attempts exchange segments of elements
// over channels; the key of a record chooses one of a fixed number of key
// groups, and a [KeyGroupRange] belongs to one subtask.
//
// From time to time the JobManager starts a checkpoint, a [CheckpointID] that
// never repeats. Sources put a [Barrier] into their output; each task that has
// seen it on all inputs snapshots its state, sends the barrier on, and
// acknowledges with a [TaskStateSnapshot] made of [StateHandle] values. When
// every awaited attempt has acknowledged, the checkpoint is written down, linked
// into the job's chain, and from then on it is what a restart resumes from.
//
// # Invariants
//
//  1. Whoever acts for an old attempt or an old [LeaderEpoch] is refused.
//  2. What a retained checkpoint refers to is immutable.
//  3. A checkpoint ends exactly once, completed or aborted.
//  4. The owner of a key group is a function of the group, the parallelism and
//     the maximum parallelism alone; see [KeyGroupRangeOf].
//
// There are no goroutines and no locks here. Read id.go first, then key_group.go,
// barrier.go, state.go and failure.go.
package weir
