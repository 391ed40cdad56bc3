package explain

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/rpc"
)

const ms = time.Millisecond

// world is a job whose waits are known, with what it would report of a checkpoint.
type world struct {
	graph jobgraph.JobGraph
	info  rpc.CheckpointInfo
}

// newWorld is a job of vertices in a row.
func newWorld(partitioning jobgraph.Partitioning, parallelism ...int) *world {
	w := &world{}
	for i, p := range parallelism {
		v := jobgraph.Vertex{Index: i, Name: fmt.Sprintf("v%d", i), Source: i == 0, Parallelism: p}
		if i > 0 {
			v.Inputs = []int{i - 1}
			w.graph.Edges = append(w.graph.Edges, jobgraph.Edge{Index: i - 1, From: i - 1, To: i, Partitioning: partitioning})
		}
		w.graph.Vertices = append(w.graph.Vertices, v)
	}
	return w
}

func (w *world) step(s rpc.CheckpointStep, at time.Duration) {
	w.info.Steps = append(w.info.Steps, rpc.StepTime{Step: s, At: at})
}

// run lets a checkpoint run in which everything takes as long as draw says.
func (w *world) run(draw func(what string) time.Duration) (slowest []weir.SubtaskID) {
	turn, planning, id := draw("turn"), draw("planning"), draw("id")
	w.step(rpc.StepRequested, -turn-planning-id)
	w.step(rpc.StepDecided, -planning-id)
	w.step(rpc.StepPlanned, -id)
	w.step(rpc.StepTriggered, 0)
	sent := draw("coordinators")
	w.step(rpc.StepCoordinated, sent)
	w.step(rpc.StepTasksTriggered, sent)
	type key struct{ v, i int }
	begun, from := map[key]time.Duration{}, map[key]key{}
	var last key
	lastAck := time.Duration(0)
	for v, vertex := range w.graph.Vertices {
		for i := range vertex.Parallelism {
			t := rpc.SubtaskCheckpoint{Vertex: vertex.Name, Attempt: weir.AttemptID{Vertex: int32(v), Subtask: int32(i)}}
			m := &t.Metrics
			first, latest := time.Duration(-1), sent+draw("busy")
			if v > 0 {
				lo, hi := 0, w.graph.Vertices[v-1].Parallelism
				if w.graph.Edges[v-1].Partitioning.Pointwise() {
					lo, hi = weir.PointwiseProducers(hi, vertex.Parallelism, i)
				}
				latest = -1
				for p := lo; p < hi; p++ {
					at := begun[key{v - 1, p}] + draw("queue")
					if first < 0 || at < first {
						first = at
					}
					if at > latest {
						latest, from[key{v, i}] = at, key{v - 1, p}
						m.LastBarrier = weir.LastBarrier{Came: true, Channel: int32(p - lo), Queued: int64(at)}
					}
				}
			}
			if first < 0 {
				first = latest
			}
			m.StartDelay, m.AlignmentDuration = first, latest-first
			begun[key{v, i}] = latest
			m.SyncDuration, m.AsyncDuration = draw("sync"), draw("async")
			t.Acknowledged = latest + m.SyncDuration + m.AsyncDuration + draw("message")
			if t.Acknowledged > lastAck {
				lastAck, last = t.Acknowledged, key{v, i}
			}
			w.info.Subtasks = append(w.info.Subtasks, t)
		}
	}
	w.info.Tasks = len(w.info.Subtasks)
	at := lastAck
	w.step(rpc.StepLastAck, at)
	for _, s := range []rpc.CheckpointStep{rpc.StepWritten, rpc.StepLinkBegan, rpc.StepLinked} {
		at += draw(s.String())
		w.step(s, at)
	}
	w.info.Status, w.info.Duration = rpc.CheckpointCompleted, at
	for k := last; ; k = from[k] {
		slowest = append(slowest, weir.SubtaskID{Vertex: int32(k.v), Subtask: int32(k.i)})
		if k.v == 0 {
			return slowest
		}
	}
}

func total(waits []Wait, k Kind) (d time.Duration) {
	for _, w := range waits {
		if w.Kind == k {
			d += w.Took
		}
	}
	return d
}

// The chain of waits is the one that the checkpoint met, and it is the whole duration.
func TestExplanationIsWhatHappened(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]jobgraph.Partitioning{jobgraph.Hash, jobgraph.Rescale}).Draw(t, "partitioning")
		w := newWorld(kind, rapid.SliceOfN(rapid.IntRange(1, 4), 1, 5).Draw(t, "parallelism")...)
		drawn := map[string]time.Duration{}
		slowest := w.run(func(what string) time.Duration {
			d := time.Duration(rapid.Int64Range(1, int64(time.Second)).Draw(t, what))
			drawn[what] = d
			return d
		})
		e := Checkpoint(&w.info, &w.graph)
		if sum(e.Waits) != w.info.Duration || !e.Whole || e.Advice == "" {
			t.Fatalf("%v together, of %v: %+v", sum(e.Waits), w.info.Duration, e)
		}
		if e.Total()-w.info.Duration != drawn["turn"]+drawn["planning"]+drawn["id"] || total(e.Before, ID) != drawn["id"] {
			t.Fatalf("before: %+v", e.Before)
		}
		last := w.info.Subtasks[0]
		for _, s := range w.info.Subtasks {
			if s.Acknowledged > last.Acknowledged {
				last = s
			}
		}
		for k, want := range map[Kind]time.Duration{
			Coordinators: drawn["coordinators"], Sync: last.Metrics.SyncDuration, Async: last.Metrics.AsyncDuration,
			Busy:     w.info.Subtasks[slowest[len(slowest)-1].Subtask].Metrics.StartDelay - drawn["coordinators"],
			Messages: last.Acknowledged - began(&last) - last.Metrics.SyncDuration - last.Metrics.AsyncDuration,
			Metadata: drawn["metadata written"], LinkTurn: drawn["link began"], Link: drawn["linked"], Ending: 0, Missing: 0,
		} {
			if got := total(e.Waits, k); got != want {
				t.Fatalf("%s: %v, want %v\n%+v", k, got, want, e.Waits)
			}
		}
		seen := map[Subtask]bool{}
		for _, x := range e.Waits {
			if x.Kind != Queue && x.Kind != Alignment {
				continue
			}
			seen[x.At] = true
			for i, s := range slowest[:len(slowest)-1] {
				if up := slowest[i+1]; x.At == (Subtask{fmt.Sprintf("v%d", s.Vertex), s.Subtask}) && x.From != (Subtask{fmt.Sprintf("v%d", up.Vertex), up.Subtask}) {
					t.Fatalf("%s waited for %s, want %v", x.At, x.From, up)
				}
			}
		}
		if len(seen) != len(slowest)-1 {
			t.Fatalf("%d subtasks waited for barriers, want those of %v", len(seen), slowest)
		}
	})
}

// Whatever statistics say, the explanation has no negative wait and is the duration.
func TestExplanationOfAnything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(jobgraph.Hash, 2, 2)
		duration := rapid.Map(rapid.Int64Range(-1000, 1000), func(n int64) time.Duration { return time.Duration(n) * ms })
		small := rapid.Int32Range(-2, 3)
		w.info.Status = rpc.CheckpointStatus(rapid.IntRange(0, 2).Draw(t, "status"))
		w.info.Kind = weir.SnapshotKind(rapid.IntRange(0, 3).Draw(t, "kind"))
		w.info.Duration = duration.Draw(t, "duration")
		for s := range rpc.StepNotified + 1 {
			if rapid.Bool().Draw(t, "taken") {
				w.step(s, duration.Draw(t, "at"))
			}
		}
		subtask := func() rpc.SubtaskCheckpoint {
			return rpc.SubtaskCheckpoint{
				Attempt: weir.AttemptID{Vertex: small.Draw(t, "vertex"), Subtask: small.Draw(t, "subtask")}, Acknowledged: duration.Draw(t, "ack"),
				Metrics: weir.CheckpointMetrics{
					StartDelay: duration.Draw(t, "delay"), AlignmentDuration: duration.Draw(t, "alignment"), SyncDuration: duration.Draw(t, "sync"),
					AsyncDuration: duration.Draw(t, "async"), Unaligned: rapid.Bool().Draw(t, "unaligned"),
					LastBarrier: weir.LastBarrier{Came: rapid.Bool().Draw(t, "came"), Input: small.Draw(t, "input"), Channel: small.Draw(t, "channel")},
				},
			}
		}
		for range rapid.IntRange(0, 5).Draw(t, "subtasks") {
			w.info.Subtasks = append(w.info.Subtasks, subtask())
		}
		for range rapid.IntRange(0, 2).Draw(t, "late") {
			w.info.Late = append(w.info.Late, subtask())
		}
		graph := &w.graph
		switch rapid.IntRange(0, 3).Draw(t, "graph") {
		case 0:
			graph = nil
		case 1:
			graph.Edges[0].From = int(small.Draw(t, "from"))
		}
		e := Checkpoint(&w.info, graph)
		if sum(e.Waits) != max(w.info.Duration, 0) || e.Advice == "" {
			t.Fatalf("%v together, of %v", sum(e.Waits), w.info.Duration)
		}
		for _, x := range append(e.Before, e.Waits...) {
			if x.Took <= 0 {
				t.Fatalf("%+v", x)
			}
		}
	})
}

// quiet is a checkpoint of 2 sources and 2 counters in which everything takes a
// millisecond, but for what a case changes.
func quiet(longer map[string]time.Duration) *world {
	w := newWorld(jobgraph.Hash, 2, 2)
	w.run(func(what string) time.Duration {
		if d := longer[what]; d > 0 {
			return d
		}
		return ms
	})
	return w
}

func text(e Explanation) string {
	var b strings.Builder
	for _, w := range e.Waits {
		fmt.Fprintf(&b, "%s %v", w.Kind, w.Took)
		if w.At != (Subtask{}) {
			fmt.Fprintf(&b, " at %s", w.At)
		}
		if w.From != (Subtask{}) {
			fmt.Fprintf(&b, " from %s", w.From)
		}
		if w.Others > 0 {
			fmt.Fprintf(&b, " and %d", w.Others)
		}
		fmt.Fprintln(&b)
	}
	return b.String()
}

func TestAdviceFitsWhatTookLongest(t *testing.T) {
	t.Parallel()
	for what, want := range map[string]string{
		"":                 "Nothing to mend: it took less than 100ms",
		"turn":             "lengthen the interval",
		"planning":         "how many jobs it leads",
		"id":               "a disk of its own",
		"coordinators":     "the source's enumerator",
		"busy":             "execution.checkpointing.unaligned.enabled=true",
		"queue":            "execution.checkpointing.unaligned.enabled=true",
		"sync":             "v1[0] stood still for its snapshot",
		"async":            "v1[0] took long to write its state",
		"message":          "short of CPU time",
		"metadata written": "the storage that the JobManager writes checkpoints to",
		"link began":       "a disk of its own",
		"linked":           "a disk of its own",
	} {
		w := quiet(map[string]time.Duration{what: time.Second})
		if e := Checkpoint(&w.info, &w.graph); !strings.Contains(e.Advice, want) || strings.Contains(e.Advice, "AT") || strings.Contains(e.Advice, "%!") {
			t.Errorf("%s: %s", what, e.Advice)
		}
	}
	// Who waits for its turn behind checkpoints that are slow is slow itself.
	w := quiet(map[string]time.Duration{"queue": time.Second, "turn": 1500 * ms})
	if e := Checkpoint(&w.info, &w.graph); !strings.Contains(e.Advice, "unaligned.enabled=true") {
		t.Error(e.Advice)
	}
	w = quiet(map[string]time.Duration{"queue": time.Second})
	w.info.Kind = weir.Savepoint
	if e := Checkpoint(&w.info, &w.graph); !strings.Contains(e.Advice, "savepoints always align") {
		t.Error(e.Advice)
	}
	w.info.Kind, w.info.Unaligned = weir.Checkpoint, true
	if e := Checkpoint(&w.info, &w.graph); !strings.Contains(e.Advice, "cannot be overtaken") {
		t.Error(e.Advice)
	}
	w = quiet(map[string]time.Duration{"async": time.Second})
	w.info.Subtasks[2].Metrics.StateBytes, w.info.Subtasks[3].Metrics.StateBytes = 1000, 100
	if e := Checkpoint(&w.info, &w.graph); !strings.Contains(e.Advice, "v1[0] has much more state") {
		t.Error(e.Advice)
	}
	if e := Checkpoint(&rpc.CheckpointInfo{}, nil); !strings.Contains(e.Advice, "no statistics") {
		t.Error(e.Advice)
	}
}

// failed cuts a checkpoint off after a time.
func (w *world) failed(after time.Duration, without ...int) {
	w.info.Status, w.info.Duration = rpc.CheckpointFailed, after
	for i, s := range w.info.Steps {
		if s.Step > rpc.StepTasksTriggered {
			w.info.Steps = w.info.Steps[:i]
			break
		}
	}
	for _, i := range without {
		t := &w.info.Subtasks[i]
		t.Acknowledged, t.Metrics = 0, weir.CheckpointMetrics{}
	}
}

func TestChains(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(w *world)
		want   string
	}{
		"completed": {func(*world) {}, `coordinators 1ms
busy 1ms at v0[0]
queue 300ms at v1[0] from v0[0]
sync 1ms at v1[0]
async 1ms at v1[0]
messages 1ms at v1[0]
metadata 1ms
link turn 1ms
link 1ms
`},
		"expired, sinks missing": {func(w *world) { w.failed(time.Second, 2, 3) }, `coordinators 1ms
busy 1ms at v0[0]
missing 998ms at v1[0] and 1
`},
		"expired, all missing: the sources are to blame": {func(w *world) { w.failed(time.Second, 0, 1, 2, 3) }, `coordinators 1ms
missing 999ms at v0[0] and 3
`},
		"failed, and it came later": {func(w *world) {
			late := w.info.Subtasks[3]
			w.failed(200*ms, 3)
			w.info.Late = []rpc.SubtaskCheckpoint{late}
		}, `coordinators 1ms
busy 1ms at v0[0]
queue 198ms at v1[1] from v0[0]
`},
		"failed while it was written": {func(w *world) {
			w.info.Status, w.info.Steps = rpc.CheckpointFailed, w.info.Steps[:len(w.info.Steps)-3]
			w.info.Duration = time.Second
		}, `coordinators 1ms
busy 1ms at v0[0]
queue 300ms at v1[0] from v0[0]
sync 1ms at v1[0]
async 1ms at v1[0]
messages 1ms at v1[0]
metadata 695ms
`},
		"hangs in a coordinator": {func(w *world) {
			w.failed(time.Second, 0, 1, 2, 3)
			w.info.Steps = w.info.Steps[:4]
		}, "coordinators 1s\n"},
		"overtook": {func(w *world) {
			for i := range w.info.Subtasks[2:] {
				m := &w.info.Subtasks[2+i].Metrics
				m.Unaligned, m.StartDelay, m.AlignmentDuration, m.AsyncDuration = true, 3*ms, 299*ms, 300*ms
			}
		}, `coordinators 1ms
busy 1ms at v0[0]
queue 1ms at v1[0] from v0[0]
alignment 1ms at v1[0] from v0[0]
sync 1ms at v1[0]
async 300ms at v1[0]
metadata 1ms
link turn 1ms
link 1ms
`},
	} {
		w := quiet(map[string]time.Duration{"queue": 300 * ms})
		c.change(w)
		e := Checkpoint(&w.info, &w.graph)
		if got := text(e); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
		if strings.Contains(name, "missing") && !strings.Contains(e.Advice, "did not acknowledge") {
			t.Errorf("%s: %s", name, e.Advice)
		}
	}
}

// Of the older checkpoints of large jobs only sums are kept.
func TestSumsTellWhoWasLast(t *testing.T) {
	t.Parallel()
	w := quiet(map[string]time.Duration{"queue": time.Second})
	w.info.Subtasks = nil
	w.info.Vertices = []rpc.VertexCheckpoint{{Name: "a", Slowest: 3, LastAck: 2}, {Name: "b", Slowest: 1, LastAck: 9}, {Name: "c", Slowest: -1, LastAck: 10}}
	e := Checkpoint(&w.info, &w.graph)
	want := "coordinators 1ms\ntasks 1.004s at b[1]\nmetadata 1ms\nlink turn 1ms\nlink 1ms\n"
	if got := text(e); got != want || e.Whole || !strings.Contains(e.Advice, "b[1] was the last") {
		t.Errorf("%s\nwant\n%s\n%s", got, want, e.Advice)
	}
}

func TestSlowest(t *testing.T) {
	t.Parallel()
	steps := []rpc.StepTime{{}}
	list := []rpc.CheckpointInfo{{Duration: 1, Steps: steps}, {Duration: 9}, {Duration: 3, Steps: steps}}
	if i := Slowest(list); i != 2 {
		t.Error(i)
	}
	if i := Slowest(list[1:2]); i != -1 {
		t.Error(i)
	}
}
