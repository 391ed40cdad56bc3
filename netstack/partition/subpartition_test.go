package partition

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/weirflow/weir/netstack/buffer"
	"github.com/weirflow/weir/netstack/wire"
)

// desk is a subpartition with its task's hand and its reader.
type desk struct {
	sub      *Subpartition
	pool     *buffer.NetworkPool
	local    *buffer.LocalPool
	open     *buffer.Buffer
	names    map[byte]string // segments are filled with a letter of their own
	notified int
	urgent   bool
	released int
}

// TestSubpartition runs the scripts. Their commands:
//
//	new                     a subpartition with a reader that found nothing
//	fill NAME bytes=n       begins a segment (d1, d2 …) and commits n bytes
//	more bytes=n            commits n bytes more
//	finish / flush          what the task does with the segment
//	event NAME [type=t]     adds an event
//	poll [nocredit] / resume / release / fail / backlog / queued
func TestSubpartition(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/subpartition", func(t *testing.T, path string) {
		d := &desk{}
		datadriven.RunTest(t, path, func(t *testing.T, c *datadriven.TestData) string {
			before := d.notified
			out := d.run(t, c)
			for range d.notified - before {
				out += "notified"
				if d.urgent {
					out += ", urgent"
				}
				out += "\n"
			}
			return out
		})
		d.close(t)
	})
}

func (d *desk) close(t *testing.T) {
	if d.open != nil {
		d.open.Release()
	}
	d.sub.Release()
	d.local.Close()
	if err := d.pool.Close(); err != nil {
		t.Error(err)
	}
}

func (d *desk) run(t *testing.T, c *datadriven.TestData) string {
	name := ""
	if len(c.CmdArgs) > 0 {
		name = c.CmdArgs[0].Key
	}
	switch c.Cmd {
	case "new":
		d.pool = buffer.NewNetworkPool(16)
		d.local, _ = d.pool.NewLocalPool(buffer.LocalOptions{Min: 1, Max: 16})
		d.sub = newSubpartition(func() { d.released++ }, 0)
		d.names = map[byte]string{}
		available, err := d.sub.Attach(func(urgent bool) { d.notified++; d.urgent = urgent })
		return fmt.Sprintf("next=%s err=%v\n", available, err)
	case "fill":
		if d.open != nil {
			d.open.Release()
		}
		d.open = d.local.TryRequest(0)
		letter := name[len(name)-1]
		d.names[letter] = name
		for i := range d.open.Data() {
			d.open.Data()[i] = letter
		}
		d.commit(t, c)
		d.open.Retain()
		d.sub.open(d.open)
	case "more":
		d.commit(t, c)
	case "finish":
		d.sub.finish()
	case "flush":
		d.sub.requestFlush()
	case "event":
		typ := "event"
		c.MaybeScanArgs(t, "type", &typ)
		d.sub.add(Event{Type: typeOf(t, typ), Bytes: []byte(name)})
	case "poll":
		return d.poll(!c.HasArg("nocredit"))
	case "resume":
		available, err := d.sub.Resume()
		return fmt.Sprintf("next=%s err=%v\n", available, err)
	case "release":
		d.sub.Release()
		return fmt.Sprintf("released %d time\n", d.released)
	case "fail":
		d.sub.fail(errors.New("task failed"))
	case "backlog":
		return fmt.Sprintln(d.sub.Backlog())
	case "queued":
		return fmt.Sprintln(d.sub.QueuedBytes())
	default:
		c.Fatalf(t, "unknown command")
	}
	return ""
}

func (d *desk) commit(t *testing.T, c *datadriven.TestData) {
	n := 0
	c.ScanArgs(t, "bytes", &n)
	d.open.Commit(d.open.Committed() + n)
}

func typeOf(t *testing.T, name string) wire.DataType {
	for typ := wire.TypeEvent; typ <= wire.TypeRecoveredEnd; typ++ {
		if typ.String() == name {
			return typ
		}
	}
	t.Fatalf("no type %s", name)
	return 0
}

func (d *desk) poll(credit bool) string {
	p, outcome := d.sub.Poll(credit)
	var b strings.Builder
	switch outcome {
	case Nothing:
		return "nothing\n"
	case NeedsCredit:
		return "needs credit\n"
	case Ended:
		return fmt.Sprintf("ended: %v\n", d.sub.Err())
	}
	if p.Type == wire.TypeData {
		fmt.Fprintf(&b, "%s[%d bytes]", d.names[p.Data.Bytes()[0]], p.Data.Len())
		p.Data.Release()
	} else {
		b.Write(p.Event)
	}
	fmt.Fprintf(&b, " backlog=%d next=%s\n", p.Backlog, p.Next)
	return b.String()
}

func TestASubpartitionHasOneReader(t *testing.T) {
	t.Parallel()
	s := newSubpartition(nil, 0)
	if _, err := s.Attach(func(bool) {}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Attach(func(bool) {}); !errors.Is(err, ErrAttached) {
		t.Errorf("got %v", err)
	}
	s.fail(ErrClosed)
	if _, err := s.Attach(func(bool) {}); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
}
