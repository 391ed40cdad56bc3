package chanstate_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/taskmanager/chanstate"
)

// TestWriter plays the scripts of testdata/writer: one command is one event, the output
// is what the writer says and how many bytes it holds.
func TestWriter(t *testing.T) {
	datadriven.Walk(t, "testdata/writer", func(t *testing.T, path string) {
		var w *chanstate.Writer
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var s, id, n, memory int64 = 0, 0, 0, 1000
			d.MaybeScanArgs(t, "s", &s)
			d.MaybeScanArgs(t, "id", &id)
			d.MaybeScanArgs(t, "bytes", &n)
			d.MaybeScanArgs(t, "memory", &memory)
			member, check := chanstate.Member(s), weir.CheckpointID(id)
			side := chanstate.InputSide
			if d.HasArg("output") {
				side = chanstate.OutputSide
			}
			var err error
			if d.HasArg("fails") {
				err = errors.New("disk full")
			}
			var ev chanstate.Event
			switch d.Cmd {
			case "new": // with s subtasks
				w = chanstate.NewWriter(memory)
				for i := range s {
					w.Step(chanstate.Join{Member: chanstate.Member(i)})
				}
				return ""
			case "join":
				ev = chanstate.Join{Member: member}
			case "leave":
				ev = chanstate.Leave{Member: member}
			case "start":
				ev = chanstate.Start{Member: member, ID: check}
			case "write":
				ev = chanstate.Write{Member: member, ID: check, Side: side, Bytes: n}
			case "finish":
				ev = chanstate.Finish{Member: member, ID: check, Side: side}
			case "abort":
				ev = chanstate.Abort{Member: member, ID: check, Cause: errors.New("barrier cancelled")}
			case "wrote":
				ev = chanstate.Wrote{Member: member, ID: check, Bytes: n, Err: err}
			case "committed":
				ev = chanstate.Committed{ID: check, Err: err}
			default:
				d.Fatalf(t, "unknown command %s", d.Cmd)
			}
			var out strings.Builder
			for _, a := range w.Step(ev) {
				fmt.Fprintln(&out, a)
			}
			fmt.Fprintf(&out, "(held: %d)\n", w.Held())
			return out.String()
		})
	})
}

// TestEveryStartIsAnsweredOnce plays random lives of a group. In the end, when all that was
// started is finished or aborted and all I/O is done, each start has one answer, nothing
// is held, and no file is left that nobody was told of.
func TestEveryStartIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		g := &life{rt: rt, w: chanstate.NewWriter(100), open: map[start]int{}, files: map[weir.CheckpointID]bool{}, committed: map[weir.CheckpointID]bool{}, bytes: map[start]int64{}}
		for range rapid.IntRange(1, 4).Draw(rt, "subtasks") {
			g.join()
		}
		newest := weir.CheckpointID(1)
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			m := rapid.SampledFrom(g.members).Draw(rt, "s")
			id := max(1, newest-weir.CheckpointID(rapid.IntRange(0, 1).Draw(rt, "older")))
			side := chanstate.Side(rapid.IntRange(0, 1).Draw(rt, "side"))
			switch rapid.IntRange(0, 12).Draw(rt, "event") {
			case 0:
				newest++
			case 1, 2, 3:
				g.step(chanstate.Start{Member: m, ID: id})
			case 4, 5, 6:
				g.step(chanstate.Write{Member: m, ID: id, Side: side, Bytes: int64(rapid.IntRange(1, 40).Draw(rt, "bytes"))})
			case 7, 8, 9:
				g.step(chanstate.Finish{Member: m, ID: id, Side: side})
			case 10:
				if rapid.IntRange(0, 3).Draw(rt, "abort") == 0 {
					g.step(chanstate.Abort{Member: m, ID: id, Cause: errors.New("aborted")})
				}
			case 11:
				g.work(rapid.IntRange(0, 5).Draw(rt, "fails") == 0)
			case 12:
				if len(g.members) > 1 && rapid.IntRange(0, 3).Draw(rt, "leave") == 0 {
					g.leave(m)
				} else if len(g.members) < 5 {
					g.join()
				}
			}
		}
		for _, m := range g.members {
			for id := newest; id > 0; id-- {
				g.step(chanstate.Finish{Member: m, ID: id, Side: chanstate.InputSide})
				g.step(chanstate.Finish{Member: m, ID: id, Side: chanstate.OutputSide})
			}
		}
		for len(g.queue) > 0 {
			g.work(false)
		}
		if rapid.Bool().Draw(rt, "abort at the end") {
			g.step(chanstate.Abort{Member: g.members[0], ID: newest, Cause: errors.New("aborted")})
		} else {
			for len(g.members) > 0 {
				g.leave(g.members[0])
			}
		}
		for len(g.queue) > 0 {
			g.work(false)
		}
		for k, n := range g.open {
			if n != 1 {
				rt.Fatalf("start of %d by s%d has %d answers\n%s", k.id, k.m, n, strings.Join(g.log, "\n"))
			}
		}
		if g.w.Held() != 0 {
			rt.Fatalf("%d bytes are held\n%s", g.w.Held(), strings.Join(g.log, "\n"))
		}
		for id := range g.files {
			rt.Fatalf("the file of %d is left\n%s", id, strings.Join(g.log, "\n"))
		}
	})
}

type start struct {
	m  chanstate.Member
	id weir.CheckpointID
}

// life is a group with a slow disk.
type life struct {
	rt        *rapid.T
	w         *chanstate.Writer
	members   []chanstate.Member
	next      chanstate.Member
	open      map[start]int // answers
	queue     []chanstate.Action
	files     map[weir.CheckpointID]bool // there, and nobody was told
	committed map[weir.CheckpointID]bool
	bytes     map[start]int64 // kept
	log       []string
}

func (g *life) join() {
	g.step(chanstate.Join{Member: g.next})
	g.members = append(g.members, g.next)
	g.next++
}

func (g *life) leave(m chanstate.Member) {
	g.step(chanstate.Leave{Member: m})
	var rest []chanstate.Member
	for _, o := range g.members {
		if o != m {
			rest = append(rest, o)
		}
	}
	g.members = rest
	for k, n := range g.open {
		if k.m == m && n == 0 {
			delete(g.open, k)
		}
	}
}

func (g *life) step(ev chanstate.Event) {
	g.log = append(g.log, ev.String())
	acts := g.w.Step(ev)
	refused := false
	for _, a := range acts {
		g.log = append(g.log, "    "+a.String())
		switch a := a.(type) {
		case chanstate.Refuse:
			refused = true
		case chanstate.Put, chanstate.Commit, chanstate.Drop:
			g.queue = append(g.queue, a)
		case chanstate.Keep:
			ev := ev.(chanstate.Write)
			g.bytes[start{ev.Member, ev.ID}] += ev.Bytes
		case chanstate.Answer:
			k := start{a.Member, a.ID}
			if ev, ok := ev.(chanstate.Start); ok && ev.Member == a.Member && ev.ID == a.ID {
				g.open[k] = 1 // an old id may be started again, and is told the same
				refused = true
				continue
			}
			if n, ok := g.open[k]; !ok || n != 0 {
				g.rt.Fatalf("answer %d to s%d for %d\n%s", n+1, a.Member, a.ID, strings.Join(g.log, "\n"))
			}
			g.open[k]++
			if a.Err == nil && g.bytes[k] > 0 && !g.committed[a.ID] {
				g.rt.Fatalf("s%d was told of %d before it was durable\n%s", a.Member, a.ID, strings.Join(g.log, "\n"))
			}
			if a.Err == nil && g.bytes[k] > 0 {
				delete(g.files, a.ID)
			}
		case chanstate.Note:
		}
	}
	if ev, ok := ev.(chanstate.Start); ok && !refused {
		g.open[start{ev.Member, ev.ID}] = 0
	}
}

// work does the next thing that waits for the disk.
func (g *life) work(fails bool) {
	if len(g.queue) == 0 {
		return
	}
	a := g.queue[0]
	g.queue = g.queue[1:]
	var err error
	if fails {
		err = errors.New("disk full")
	}
	switch a := a.(type) {
	case chanstate.Put:
		g.files[a.ID] = true
		g.step(chanstate.Wrote{Member: a.Member, ID: a.ID, Bytes: a.Bytes, Err: err})
	case chanstate.Commit:
		g.committed[a.ID] = !fails
		g.step(chanstate.Committed{ID: a.ID, Err: err})
	case chanstate.Drop:
		delete(g.files, a.ID)
	default:
	}
}
