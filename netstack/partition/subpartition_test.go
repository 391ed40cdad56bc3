package partition

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/weirflow/weir"
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
	promise  *promise
	decided  []string
}

// TestSubpartition runs the scripts. Their commands:
//
//	new [local]             a subpartition with a reader that found nothing
//	fill NAME bytes=n       begins a segment (d1, d2 …) and commits n bytes
//	more bytes=n            commits n bytes more
//	finish / flush          what the task does with the segment
//	event NAME [type=t]     adds an event
//	barrier id=n            adds an unaligned barrier
//	timeoutable id=n        adds a timeoutable barrier
//	timeout / abort         what the task does with the last timeoutable barrier
//	tohead id=n / overtaken / overtaking    what a reader in this process does
//	poll [nocredit] [priority] / resume / release / fail / backlog / queued
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
			for _, id := range d.decided {
				out += "decided: barrier " + id + "\n"
			}
			d.decided = nil
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
		attach := d.sub.Attach
		if name == "local" {
			attach = d.sub.AttachLocal
		}
		next, err := attach(func(urgent bool) { d.notified++; d.urgent = urgent })
		return fmt.Sprintf("next=%s err=%v\n", next, err)
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
	case "barrier", "timeoutable", "timeout", "abort", "tohead", "overtaken", "overtaking":
		return d.barrier(t, c)
	case "poll":
		return d.poll(!c.HasArg("nocredit"), c.HasArg("priority"))
	case "resume":
		next, err := d.sub.Resume()
		return fmt.Sprintf("next=%s err=%v\n", next, err)
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

// barrier runs the commands about barriers.
func (d *desk) barrier(t *testing.T, c *datadriven.TestData) string {
	var id weir.CheckpointID
	if c.HasArg("id") {
		n := 0
		c.ScanArgs(t, "id", &n)
		id = weir.CheckpointID(n)
	}
	b := wire.Barrier{ID: id, Options: weir.CheckpointOptions{Alignment: weir.Unaligned}}
	switch c.Cmd {
	case "barrier":
		return d.captured(d.sub.overtake(NewEvent(wire.TypePriorityEvent, b)))
	case "timeoutable":
		b.Options.Alignment, b.Options.Timeout = weir.Aligned, time.Second
		d.promise = &promise{id: id, decided: func(id weir.CheckpointID) { d.decided = append(d.decided, fmt.Sprint(id)) }}
		d.promise.left.Store(1)
		return fmt.Sprintf("open=%t\n", d.sub.addTimeoutable(NewEvent(wire.TypeAnnouncedEvent, b), d.promise))
	case "timeout":
		views, open := d.sub.timeout(d.promise)
		if !open {
			return "not open\n"
		}
		d.promise.keep()
		return d.captured(views)
	case "abort":
		d.sub.abort(d.promise)
	case "tohead":
		return fmt.Sprintf("moved=%t\n", d.sub.ToHead(id))
	case "overtaken":
		return d.captured(d.sub.Overtaken())
	case "overtaking":
		return fmt.Sprintf("%d\n", d.sub.Overtaking())
	}
	return ""
}

func (d *desk) captured(views []buffer.View) string {
	var parts []string
	for _, v := range views {
		parts = append(parts, d.segment(v))
		v.Release()
	}
	return fmt.Sprintf("captured %s\n", parts)
}

func (d *desk) segment(v buffer.View) string {
	if v.Len() == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%s[%d bytes]", d.names[v.Bytes()[0]], v.Len())
}

func (d *desk) poll(credit, priority bool) string {
	p, outcome := Polled{}, Nothing
	if priority {
		p, outcome = d.sub.PollPriority()
	} else {
		p, outcome = d.sub.Poll(credit)
	}
	var b strings.Builder
	switch outcome {
	case Nothing:
		if priority {
			return fmt.Sprintf("nothing, next=%s\n", p.Next)
		}
		return "nothing\n"
	case NeedsCredit:
		return "needs credit\n"
	case Ended:
		return fmt.Sprintf("ended: %v\n", d.sub.Err())
	}
	if p.Type == wire.TypeData {
		b.WriteString(d.segment(p.Data))
		p.Data.Release()
	} else if e, err := wire.DecodeEvent(p.Event); err == nil {
		if p.Announcement {
			b.WriteString("announcement of ")
		}
		fmt.Fprintf(&b, "%s (%s)", e, p.Type)
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
