package barrier_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/taskmanager/barrier"
)

// The scripts of testdata: one command is one event, the output is what the handler
// says, then which channels are blocked and recorded.

func TestAligned(t *testing.T)     { scripts(t, "testdata/aligned", barrier.Aligned) }
func TestTracker(t *testing.T)     { scripts(t, "testdata/tracker", barrier.AtLeastOnce) }
func TestUnaligned(t *testing.T)   { scripts(t, "testdata/unaligned", barrier.Alternating) }
func TestAlternating(t *testing.T) { scripts(t, "testdata/alternating", barrier.Alternating) }

func scripts(t *testing.T, dir string, mode barrier.Mode) {
	datadriven.Walk(t, dir, func(t *testing.T, path string) {
		s := &script{mode: mode}
		datadriven.RunTest(t, path, s.run)
	})
}

type script struct {
	mode     barrier.Mode
	h        *barrier.Handler
	channels int
	now      time.Time
	armed    weir.CheckpointID // 0: no timer is
	due      time.Time
	out      strings.Builder
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	s.out.Reset()
	switch d.Cmd {
	case "new":
		d.ScanArgs(t, "channels", &s.channels)
		s.now = time.Unix(0, 0)
		s.h = barrier.New(barrier.Options{Mode: s.mode, Channels: s.channels, AfterTasksFinish: !d.HasArg("off")})
		return ""
	case "advance": // "advance 100ms"; timers that are due run unless "late" is said
		s.now = s.now.Add(duration(t, d, d.CmdArgs[0].Key))
		if s.armed == 0 || s.due.After(s.now) || d.HasArg("late") {
			return ""
		}
		id := s.armed
		s.armed = 0
		s.step(barrier.Timer{ID: id})
	case "data": // "data ch=0 x": the task takes x from channel 0
		var ch int
		d.ScanArgs(t, "ch", &ch)
		x := d.CmdArgs[1].Key
		if s.h.Recording(ch) {
			return fmt.Sprintf("capture %s of ch%d for %d\n", x, ch, s.h.Pending())
		}
		return fmt.Sprintf("%s is not captured\n", x)
	default:
		s.step(s.event(t, d))
	}
	return s.out.String()
}

func (s *script) step(ev barrier.Event) {
	for _, a := range s.h.Step(s.now, ev) {
		fmt.Fprintln(&s.out, a)
		switch a := a.(type) {
		case barrier.ArmTimer:
			s.armed, s.due = a.ID, s.now.Add(a.After)
		case barrier.CancelTimer:
			s.armed = 0
		default:
		}
	}
	fmt.Fprintf(&s.out, "(blocked: %s)\n", s.list(s.h.Blocked))
	if r := s.list(s.h.Recording); r != "" {
		fmt.Fprintf(&s.out, "(recording: %s)\n", r)
	}
}

func (s *script) list(is func(ch int) bool) string {
	var names []string
	for ch := range s.channels {
		if is(ch) {
			names = append(names, fmt.Sprintf("ch%d", ch))
		}
	}
	return strings.Join(names, " ")
}

func (s *script) event(t *testing.T, d *datadriven.TestData) barrier.Event {
	var ch int
	var id, bytes int64
	d.MaybeScanArgs(t, "ch", &ch)
	d.MaybeScanArgs(t, "id", &id)
	d.MaybeScanArgs(t, "bytes", &bytes)
	b := s.barrier(t, d, weir.CheckpointID(id))
	switch d.Cmd {
	case "barrier":
		return barrier.Barrier{Channel: ch, Barrier: b, Bytes: bytes, FromRPC: d.HasArg("rpc")}
	case "cancel":
		return barrier.Cancellation{Channel: ch, ID: b.ID}
	case "announce":
		return barrier.Announcement{Channel: ch, Barrier: b}
	case "end":
		return barrier.EndOfPartition{Channel: ch, Bytes: bytes}
	case "timer":
		return barrier.Timer{ID: b.ID, Bytes: bytes}
	case "give-up":
		var name string
		d.ScanArgs(t, "reason", &name)
		reason, ok := weir.ParseFailureReason(name)
		if !ok {
			d.Fatalf(t, "unknown reason %s", name)
		}
		return barrier.GivenUp{ID: b.ID, Reason: reason}
	}
	d.Fatalf(t, "unknown command %s", d.Cmd)
	return nil
}

// barrier reads what a barrier has: its age, or the time ts= of its trigger (0: when the
// script began); timeout= ; unaligned, forced, at-least-once; savepoint.
func (s *script) barrier(t *testing.T, d *datadriven.TestData, id weir.CheckpointID) weir.Barrier {
	b := weir.Barrier{ID: id}
	var text string
	if d.MaybeScanArgs(t, "age", &text) {
		b.Age = duration(t, d, text)
	}
	if d.MaybeScanArgs(t, "ts", &text) {
		b.Age = s.now.Sub(time.Unix(0, 0).Add(duration(t, d, text)))
	}
	if d.MaybeScanArgs(t, "timeout", &text) {
		b.Options.Timeout = duration(t, d, text)
	}
	for arg, alignment := range map[string]weir.Alignment{"unaligned": weir.Unaligned, "forced": weir.ForcedAligned, "at-least-once": weir.AtLeastOnce} {
		if d.HasArg(arg) {
			b.Options.Alignment = alignment
		}
	}
	if d.HasArg("savepoint") {
		b.Options.Kind = weir.Savepoint
	}
	return b
}

func duration(t *testing.T, d *datadriven.TestData, text string) time.Duration {
	x, err := time.ParseDuration(text)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return x
}
