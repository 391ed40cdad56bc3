package snapshot_test

import (
	"errors"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore/faulty"
	"github.com/weirflow/weir/taskmanager/snapshot"
)

// channelState is a writer that does what the test says.
type channelState struct{ w *world }

func (c channelState) Start(id weir.CheckpointID, location string) error {
	c.w.add("start %d %s", id, location)
	return nil
}
func (c channelState) FinishInput(id weir.CheckpointID)        { c.w.add("input %d", id) }
func (c channelState) FinishOutput(id weir.CheckpointID)       { c.w.add("output %d", id) }
func (c channelState) Abort(id weir.CheckpointID, cause error) { c.w.add("abort channels %d", id) }

// inFlight runs a test of a task whose barriers may overtake data.
func inFlight(t *testing.T, test func(w *world)) {
	t.Helper()
	runWith(t, func(w *world) { w.channels = true }, 0, faulty.Hook{}, test)
}

func (w *world) triggerWith(id weir.CheckpointID, age time.Duration, o weir.CheckpointOptions) {
	w.t.Helper()
	o.Location = "chk"
	if err := w.c.Trigger(w.t.Context(), weir.Barrier{ID: id, Age: age, Options: o}, weir.CheckpointMetrics{}); err != nil {
		w.add("task failed: %v", err)
	}
}

var overtaking = weir.CheckpointOptions{Alignment: weir.Unaligned}

// ended is the end of a checkpoint's channel state.
func (w *world) ended(id weir.CheckpointID, err error) {
	c := snapshot.Channels{ID: id, Err: err}
	if err == nil {
		c.Bytes = 700
		c.Handles = []weir.ChannelStateHandle{{Producer: 3, Handle: weir.StateHandle{File: "chk/channels", Length: 700}}}
	}
	w.c.Captured(w.t.Context(), c)
	w.c.ChannelState(id, err)
	w.settle()
}

func TestChannelStateIsAcknowledgedWithTheRest(t *testing.T) {
	inFlight(t, func(w *world) {
		w.triggerWith(3, 0, overtaking)
		w.settle()
		w.expect("trigger", "start 3 chk", "barrier 3 unaligned", "output 3", "sent 3", "snapshot 3")
		w.c.Aligned(3, 5*time.Second, 9)
		w.c.InputCaptured(3)
		w.c.InputCaptured(4)
		w.expect("last barrier", "input 3")
		w.ended(3, nil)
		w.expect("written", "ack 3")
		m := w.metrics[0]
		if m.PersistedBytes != 700 || m.StateBytes < 700 || !m.Unaligned || m.AlignmentDuration != 5*time.Second || m.AlignedBytes != 9 {
			t.Errorf("metrics %+v", m)
		}
		if len(w.acked[0].Channels) != 1 || len(w.acked[0].Operators) != 1 {
			t.Errorf("acknowledged %+v", w.acked[0])
		}
		if w.c.Running() != 0 {
			t.Errorf("%d parts run", w.c.Running())
		}
	})
}

func TestBarrierThatMayTimeOut(t *testing.T) {
	may := weir.CheckpointOptions{Timeout: time.Second}
	t.Run("read_in_time", func(t *testing.T) {
		inFlight(t, func(w *world) {
			w.undecided = 2
			w.triggerWith(3, 400*time.Millisecond, may)
			w.settle()
			w.expect("trigger", "start 3 chk", "input 3", "barrier 3", "arm 3 600ms", "sent 3", "snapshot 3")
			w.c.Decided(3)
			w.expect("one output")
			w.c.Decided(3)
			w.expect("all outputs", "disarm", "output 3")
			w.ended(3, nil)
			w.c.Timeout(3)
			w.expect("written, and a late timer", "ack 3")
		})
	})
	t.Run("too_late", func(t *testing.T) {
		inFlight(t, func(w *world) {
			w.undecided = 1
			w.triggerWith(3, 2*time.Second, may)
			w.settle()
			w.expect("trigger", "start 3 chk", "input 3", "barrier 3", "arm 3 0s", "sent 3", "snapshot 3")
			w.c.Timeout(3)
			w.c.Decided(3)
			w.expect("timer", "time out 3", "disarm", "output 3")
		})
	})
	t.Run("a_savepoint_never", func(t *testing.T) {
		inFlight(t, func(w *world) {
			w.triggerWith(3, 2*time.Second, weir.CheckpointOptions{Timeout: time.Second, Kind: weir.Savepoint})
			w.settle()
			w.expect("trigger", "barrier 3", "sent 3", "snapshot 3", "ack 3")
		})
	})
	t.Run("the_next_checkpoint_calls_it_off", func(t *testing.T) {
		inFlight(t, func(w *world) {
			w.undecided = 1
			w.triggerWith(3, 0, may)
			w.undecided = 0
			w.log = nil
			w.triggerWith(4, 0, overtaking)
			w.expect("trigger", "disarm", "start 4 chk", "barrier 4 unaligned", "output 4", "sent 4", "snapshot 4")
			w.ended(3, &snapshot.ReasonError{Reason: weir.CheckpointDeclinedSubsumed, Err: errors.New("overlap")})
			w.expect("3 ends", "decline 3 CHECKPOINT_DECLINED_SUBSUMED", "abort channels 3", "leave barrier 3")
		})
	})
}

func TestChannelStateThatFailsDeclinesOnce(t *testing.T) {
	for _, first := range []string{"channels", "state"} {
		t.Run(first, func(t *testing.T) {
			inFlight(t, func(w *world) {
				w.backend.size = 5000
				w.triggerWith(3, 0, overtaking)
				if first == "state" {
					w.settle()
				}
				w.log = nil
				w.ended(3, &snapshot.ReasonError{Reason: weir.ChannelStateSharedStreamException, Err: errors.New("x")})
				w.c.Abort(3, weir.CheckpointDeclined)
				w.settle()
				w.expect("failure", "decline 3 CHANNEL_STATE_SHARED_STREAM_EXCEPTION", "abort channels 3", "leave barrier 3")
				if f := w.files(); len(f) > 0 || w.c.Running() != 0 {
					t.Errorf("left: %v, %d", f, w.c.Running())
				}
			})
		})
	}
}

func TestAbortOfWhatWasTriggered(t *testing.T) {
	t.Run("O-UNA-03_by_a_marker", func(t *testing.T) {
		inFlight(t, func(w *world) {
			w.backend.size = 5000
			w.triggerWith(3, 0, overtaking)
			w.settle()
			w.log = nil
			w.c.Abort(3, weir.CheckpointDeclinedOnCancellationBarrier)
			w.settle()
			w.expect("abort", "abort channels 3", "leave barrier 3", "decline 3 CHECKPOINT_DECLINED_ON_CANCELLATION_BARRIER", "cancel 3")
			if w.c.Capturing(3) {
				t.Error("still captures")
			}
			w.ended(3, nil) // it was written before the abort came
			w.ended(3, errors.New("aborted"))
			w.expect("nothing follows")
			if f := w.files(); len(f) > 0 || w.c.Running() != 0 {
				t.Errorf("left: %v, %d", f, w.c.Running())
			}
		})
	})
	t.Run("by_the_job_manager", func(t *testing.T) {
		inFlight(t, func(w *world) {
			w.triggerWith(3, 0, overtaking)
			w.settle()
			w.log = nil
			w.abort(3, 0)
			w.c.Abort(3, weir.CheckpointDeclined)
			w.expect("abort", "abort channels 3", "leave barrier 3", "aborted 3")
		})
	})
	t.Run("O-TSK-02_by_a_failure_after_the_barrier_left", func(t *testing.T) {
		inFlight(t, func(w *world) {
			w.syncErr = errors.New("no")
			w.triggerWith(3, 0, overtaking)
			w.settle()
			w.expect("trigger", "start 3 chk", "barrier 3 unaligned", "output 3", "sent 3", "snapshot 3",
				"abort channels 3", "leave barrier 3", "task failed: no")
		})
	})
	t.Run("remembered", func(t *testing.T) {
		inFlight(t, func(w *world) {
			w.abort(3, 0)
			w.log = nil
			w.triggerWith(3, 0, overtaking)
			w.c.InputCaptured(3)
			w.expect("trigger", "abort channels 3", "leave barrier 3", "cancel 3")
		})
	})
}
