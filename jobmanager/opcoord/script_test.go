package opcoord

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/weirflow/weir"
)

// TestHolder runs the scripts of testdata; those named O-GAT-… are the cases of the
// coordinator event gateway.
//
//	new PARALLELISM              a holder, all subtasks running as attempt 1
//	run S#N, end S#N, reset
//	give S EVENT [raw]           the coordinator gives an event to subtask S
//	confirm S#N SEQ [error=TEXT]
//	receive S#N EVENT
//	request ID, taken ID STATE, refused ID TEXT, barrier S#N ID, aborted ID, completed ID
func TestHolder(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var h *Holder
		var token Token
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "new" {
				h = running(int32(number(t, d, 0)))
				return "ok"
			}
			if d.Cmd == "give" {
				token++
			}
			return render(h.Step(parseEvent(t, d, token)))
		})
	})
}

func parseEvent(t *testing.T, d *datadriven.TestData, token Token) Event {
	t.Helper()
	word := func(i int) string { return d.CmdArgs[i].Key }
	id := func(i int) weir.CheckpointID { return weir.CheckpointID(number(t, d, i)) }
	switch d.Cmd {
	case "run":
		return SubtaskRunning{attempt(t, word(0))}
	case "end":
		return SubtaskEnded{attempt(t, word(0))}
	case "reset":
		return Reset{}
	case "give":
		return EventGiven{token, int32(number(t, d, 0)), []byte(word(1))}
	case "confirm":
		ev := EventConfirmed{Attempt: attempt(t, word(0)), Seq: uint64(number(t, d, 1))}
		d.MaybeScanArgs(t, "error", &ev.Error)
		return ev
	case "receive":
		return EventReceived{attempt(t, word(0)), []byte(word(1))}
	case "request":
		return CheckpointRequested{id(0)}
	case "taken":
		return SnapshotTaken{id(0), []byte(word(1))}
	case "refused":
		return SnapshotRefused{id(0), word(1)}
	case "barrier":
		return BarrierSent{attempt(t, word(0)), id(1)}
	case "aborted":
		return CheckpointAborted{id(0)}
	case "completed":
		return CheckpointCompleted{id(0)}
	}
	d.Fatalf(t, "unknown command %s", d.Cmd)
	return nil
}

// render shows events and states by their text, which the String methods leave out.
func render(actions []Action) string {
	var b strings.Builder
	for _, a := range actions {
		switch a := a.(type) {
		case Send:
			fmt.Fprintf(&b, "send %s to %d#%d as %d\n", a.Event, a.Attempt.Subtask, a.Attempt.N, a.Seq)
		case Deliver:
			fmt.Fprintf(&b, "deliver %s of subtask %d\n", a.Event, a.Subtask)
		case Snapshotted:
			fmt.Fprintf(&b, "snapshotted %d: %s\n", a.Checkpoint, a.State)
		case EventAccepted: // follows from what is sent or held
		default:
			fmt.Fprintln(&b, a)
		}
	}
	if b.Len() == 0 {
		return "-"
	}
	return b.String()
}

func running(parallelism int32) *Holder {
	h := NewHolder(weir.OperatorIDOf("numbers"), "numbers", int(parallelism))
	for i := range parallelism {
		h.Step(SubtaskRunning{weir.AttemptID{Subtask: i, Epoch: 5, N: 1}})
	}
	return h
}

func number(t *testing.T, d *datadriven.TestData, i int) int {
	t.Helper()
	n, err := strconv.Atoi(d.CmdArgs[i].Key)
	if err != nil {
		d.Fatalf(t, "argument %d: %v", i, err)
	}
	return n
}

func attempt(t *testing.T, text string) weir.AttemptID {
	t.Helper()
	id := weir.AttemptID{Epoch: 5}
	if _, err := fmt.Sscanf(text, "%d#%d", &id.Subtask, &id.N); err != nil {
		t.Fatalf("attempt %q: %v", text, err)
	}
	return id
}
