package weir

import "time"

// StateHandle refers to immutable bytes of a snapshot: either held inline or a
// range of a file. A file is named by a slash-separated path relative to the
// job's checkpoint directory; a name is never reused.
type StateHandle struct {
	Inline []byte // the bytes themselves, if File is empty
	File   string
	Offset int64
	Length int64
	CRC    uint32 // crc32c of the bytes
}

// IsZero says whether the handle refers to nothing.
func (h StateHandle) IsZero() bool { return h.File == "" && h.Inline == nil }

// KeyedStateHandle is the keyed state of one operator subtask. Sections lie in
// one handle; the backend's format finds key groups inside.
type KeyedStateHandle struct {
	Range   KeyGroupRange
	Backend string // the backend that wrote it, for example "heap"
	Handle  StateHandle
}

// OperatorSubtaskState is what one operator's subtask put into a snapshot.
type OperatorSubtaskState struct {
	Operator OperatorID
	Name     string             // the operator's name, for people
	Keyed    []KeyedStateHandle // at most one per snapshot; several after redistribution
	Elements []StateHandle      // the operator's own state, a list that can be dealt to other subtasks (behaviour §21.2), for example a source's splits with their positions
	Schemas  []StateSchema      // of the keyed states, once per operator
}

// StateSchema records how a state's values were encoded, so that a later
// version can tell what changed (DECISIONS 27).
type StateSchema struct {
	State string // the state's name
	Key   string // canonical text of the key's schema
	Value string // canonical text of the value's schema
}

// TaskStateSnapshot is what one attempt acknowledges.
type TaskStateSnapshot struct {
	Operators []OperatorSubtaskState // head of the chain first
	Channels  []ChannelStateHandle   // what was in flight, if the checkpoint did not align
	Finished  bool                   // the subtask's operators had finished
}

// EdgeID names an exchange across versions of a job: by the operators it connects,
// and by which input of the consumer it is.
type EdgeID struct {
	From, To string // operators' names
	Input    int32  // index among the inputs of To
}

// ChannelSide says which end of a channel captured its data.
type ChannelSide uint8

// Sides of a channel. What the consumer captured comes before what the producer
// captured: a record that an overtaking barrier cut lies half in each.
const (
	ConsumerSide ChannelSide = iota
	ProducerSide
)

// ChannelStateHandle is what one end of one channel captured in an unaligned
// checkpoint. Its bytes are chunks of elements (docs/formats.md, "Channel state").
type ChannelStateHandle struct {
	Edge     EdgeID
	Side     ChannelSide
	Producer int32 // subtask
	Consumer int32 // subtask
	Handle   StateHandle
}

// CheckpointMetrics are one subtask's timings and sizes of one snapshot.
type CheckpointMetrics struct {
	StartDelay        time.Duration // trigger to first barrier (or trigger RPC) at the subtask
	AlignmentDuration time.Duration // first to last barrier
	SyncDuration      time.Duration // synchronous part
	AsyncDuration     time.Duration // asynchronous part
	AlignedBytes      int64         // processed between the first and the last barrier
	StateBytes        int64         // size of the acknowledged state
	PersistedBytes    int64         // in-flight bytes captured
	Unaligned         bool          // the subtask's snapshot did not wait for all barriers
	// QueuedBytes were queued ahead of the barriers when the checkpoint was
	// triggered: what the subtask took from its channels between the trigger and
	// each channel's barrier. Channels are first in, first out, so this is exact.
	QueuedBytes int64
	// DrainRate is how fast, in bytes per second of its time not spent idle, the
	// subtask took bytes from its inputs in the seconds before the trigger; 0 if
	// unknown. QueuedBytes ÷ DrainRate predicts how long the barriers wait.
	DrainRate float64
	// LastBarrier is the one that the snapshot began with.
	LastBarrier LastBarrier
}

// LastBarrier is the barrier of a checkpoint that a subtask received last before its
// snapshot began: what it waited for.
type LastBarrier struct {
	Came    bool  // false: none did, as at a source
	Input   int32 // index among the task's inputs
	Channel int32 // number in that input, by producer
	// Queued are the bytes that were in the channel ahead of it when the checkpoint was
	// triggered.
	Queued int64
}
