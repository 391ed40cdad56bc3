package chanstate

import (
	"sync/atomic"

	"github.com/weirflow/weir"
)

// Subtask is one task's channel-state writer. Any goroutine may call it; calls do not
// wait for I/O.
type Subtask struct {
	o      Options
	groups *Groups
	writer *sharedWriter
	member Member
	closed atomic.Bool
}

// Start begins the channel state of a checkpoint; location is that of its options.
// [ErrRegistered] is a bug of the caller, [ErrClosed] comes after Close; whatever
// else is wrong is answered by Done.
//
// The file that subtasks share is complete when all of the group have started and
// finished. So a task that was told of an unaligned checkpoint and takes no part in it
// calls Abort.
func (s *Subtask) Start(id weir.CheckpointID, location string) error {
	return s.writer.start(s.member, id, location)
}

// Input captures bytes of an input channel at the consumer, after those captured of
// it before. base is that of the segment that held them. The bytes are copied.
func (s *Subtask) Input(id weir.CheckpointID, edge weir.EdgeID, producer int32, base int64, b []byte) {
	k := endKey{side: weir.ConsumerSide, edge: edge, producer: producer, consumer: s.o.Attempt.Subtask}
	s.writer.write(Write{s.member, id, InputSide, int64(len(b))}, k, base, b)
}

// Output captures bytes of a subpartition at the producer, as Input does.
func (s *Subtask) Output(id weir.CheckpointID, edge weir.EdgeID, consumer int32, base int64, b []byte) {
	k := endKey{side: weir.ProducerSide, edge: edge, producer: s.o.Attempt.Subtask, consumer: consumer}
	s.writer.write(Write{s.member, id, OutputSide, int64(len(b))}, k, base, b)
}

// FinishInput says that all input of a checkpoint is captured.
func (s *Subtask) FinishInput(id weir.CheckpointID) {
	s.writer.step(Finish{s.member, id, InputSide})
}

// FinishOutput says that all output of a checkpoint is captured.
func (s *Subtask) FinishOutput(id weir.CheckpointID) {
	s.writer.step(Finish{s.member, id, OutputSide})
}

// Abort gives up a checkpoint and all older ones, now or whenever they are started. The
// cause may be an *[Error], which names the reason.
func (s *Subtask) Abort(id weir.CheckpointID, cause error) {
	s.writer.step(Abort{s.member, id, cause})
}

// Close takes the task out of its group. Done is not called any more once it returned,
// except for a call that is under way. It may be called twice.
func (s *Subtask) Close() {
	if !s.closed.Swap(true) {
		s.groups.leave(s)
	}
}
