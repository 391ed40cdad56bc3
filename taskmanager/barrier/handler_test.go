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

// TestAligned plays the scripts of testdata/aligned: one command is one event, the
// output is what the handler says, then which channels are blocked.
func TestAligned(t *testing.T) {
	datadriven.Walk(t, "testdata/aligned", func(t *testing.T, path string) {
		s := &script{}
		datadriven.RunTest(t, path, s.run)
	})
}

type script struct {
	h        *barrier.Handler
	channels int
	now      time.Time
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "new":
		d.ScanArgs(t, "channels", &s.channels)
		s.now = time.Unix(0, 0)
		s.h = barrier.New(barrier.Options{Channels: s.channels, AfterTasksFinish: !d.HasArg("off")})
		return ""
	case "advance":
		x, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		s.now = s.now.Add(x)
		return ""
	}
	var out strings.Builder
	for _, a := range s.h.Step(s.now, s.event(t, d)) {
		fmt.Fprintln(&out, a)
	}
	var blocked []string
	for ch := range s.channels {
		if s.h.Blocked(ch) {
			blocked = append(blocked, fmt.Sprintf("ch%d", ch))
		}
	}
	fmt.Fprintf(&out, "(blocked: %s)\n", strings.Join(blocked, " "))
	return out.String()
}

func (s *script) event(t *testing.T, d *datadriven.TestData) barrier.Event {
	var ch int
	var id, bytes int64
	var age string
	d.ScanArgs(t, "ch", &ch)
	d.MaybeScanArgs(t, "id", &id)
	d.MaybeScanArgs(t, "bytes", &bytes)
	b := weir.Barrier{ID: weir.CheckpointID(id)}
	if d.MaybeScanArgs(t, "age", &age) {
		var err error
		if b.Age, err = time.ParseDuration(age); err != nil {
			d.Fatalf(t, "%v", err)
		}
	}
	switch d.Cmd {
	case "barrier":
		return barrier.Barrier{Channel: ch, Barrier: b, Bytes: bytes}
	case "cancel":
		return barrier.Cancellation{Channel: ch, ID: b.ID}
	case "announce":
		return barrier.Announcement{Channel: ch, Barrier: b}
	case "end":
		return barrier.EndOfPartition{Channel: ch, Bytes: bytes}
	}
	d.Fatalf(t, "unknown command %s", d.Cmd)
	return nil
}
