package flow_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/flow/flowtest"
	"github.com/weirflow/weir/netstack/buffer"
	"github.com/weirflow/weir/netstack/partition"
	"github.com/weirflow/weir/netstack/wire"
	"github.com/weirflow/weir/operator"
)

// segments is an output of segments, as a task's is.
type segments struct {
	*flowtest.Output
	p       *partition.ResultPartition
	emitted int // not appended
	cutter  wire.Cutter
}

func newSegments(t *testing.T, out *flowtest.Output) *segments {
	network := buffer.NewNetworkPool(64)
	pool, err := network.NewLocalPool(buffer.LocalOptions{Min: 2, Max: 64})
	if err != nil {
		t.Fatal(err)
	}
	s := &segments{Output: out, cutter: wire.Cutter{Keyed: true}}
	s.p = partition.New(partition.Options{Partitioning: partition.Hash, Subpartitions: 1, MaxParallelism: 128, Pool: pool})
	t.Cleanup(func() {
		s.p.Close()
		s.p.Subpartition(0).Release()
		if err := network.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *segments) Appender() *partition.Appender { return s.p.Appender() }

func (s *segments) Emit(hash uint64, timestamp int64, payload []byte) {
	s.emitted++
	s.p.Emit(hash, timestamp, payload)
}

// records reads what was written.
func (s *segments) records(t *testing.T) (all []flowtest.Record) {
	t.Helper()
	s.p.FlushAll()
	for {
		p, outcome := s.p.Subpartition(0).Poll(true)
		if outcome != partition.Found {
			return all
		}
		s.cutter.Feed(p.Data.Bytes(), p.Data.Base())
		for {
			var e wire.Element
			ok, err := s.cutter.Next(&e)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			all = append(all, flowtest.Record{Hash: e.Hash, Timestamp: e.Timestamp, Payload: bytes.Clone(e.Payload)})
		}
		p.Data.Release()
	}
}

// openSegments opens the first task of a job with an output of segments.
func openSegments(t *testing.T, job flow.Job) (*flowtest.Task, *segments) {
	t.Helper()
	task := flowtest.New(t, job, nil, flowtest.Options{})
	s := newSegments(t, task.Outputs[0])
	task.Env.Outputs[0] = s
	if err := task.Chain.Open(task.Env); err != nil {
		t.Fatal(err)
	}
	return task, s
}

type named struct {
	Name string
	N    int
}

func countBy[K comparable, T any](g *flow.Graph, in flow.Stream[T], key func(T) K) {
	flow.Process(flow.KeyBy(in, "by", key), "count", func(*flow.Setup) flow.Processor[K, T, int] {
		return flow.ProcessFunc[K, T, int](func(*flow.Context[K], T, *flow.Out[int]) error { return nil })
	})
}

func nameOf(v int) string { return strings.Repeat("n", v%40) + "-" }

func TestRecordsInSegmentsAreThoseThatAreEmitted(t *testing.T) {
	t.Parallel()
	const n = 5000
	for name, build := range map[string]func(g *flow.Graph){
		"source":          func(g *flow.Graph) { countBy(g, flow.From(g, "in", numbers(n)), nameOf) },
		"key not a text":  func(g *flow.Graph) { countBy(g, flow.From(g, "in", numbers(n)), func(v int) int { return v % 7 }) },
		"behind a map":    func(g *flow.Graph) { countBy(g, mapped(g, n), func(v named) string { return v.Name }) },
		"record not flat": func(g *flow.Graph) { countBy(g, lists(g, n), func(v []int) string { return nameOf(len(v)) }) },
		"key in the heap": func(g *flow.Graph) { countBy(g, mapped(g, n), func(v named) ownKey { return ownKey(v.N) }) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plain := flowtest.Open(t, define(build), nil, flowtest.Options{})
			task, s := openSegments(t, define(build))
			for plain.Poll(100) != operator.SourceEnd {
			}
			for task.Poll(100) != operator.SourceEnd {
			}
			want, got := plain.Emitted(), s.records(t)
			if len(got) != n || len(want) != n {
				t.Fatalf("%d records, want %d", len(got), len(want))
			}
			for i := range want {
				if got[i].Hash != want[i].Hash || got[i].Timestamp != want[i].Timestamp || !bytes.Equal(got[i].Payload, want[i].Payload) {
					t.Fatalf("record %d is %+v, want %+v", i, got[i], want[i])
				}
			}
			if slow := name == "record not flat" || name == "key in the heap"; slow != (s.emitted == n) {
				t.Errorf("%d of %d were emitted one by one", s.emitted, n)
			}
		})
	}
}

// ownKey is a key with an encoding of its own.
type ownKey int

func (k ownKey) AppendBinary(b []byte) ([]byte, error) { return append(b, byte(k)), nil }
func (k *ownKey) UnmarshalBinary(b []byte) error       { *k = ownKey(b[0]); return nil }

func mapped(g *flow.Graph, n int) flow.Stream[named] {
	return flow.Map(flow.From(g, "in", numbers(n)), "name", func(v int) named { return named{nameOf(v), v} })
}

func lists(g *flow.Graph, n int) flow.Stream[[]int] {
	return flow.Map(flow.From(g, "in", numbers(n)), "list", func(v int) []int { return make([]int, v%3) })
}

func TestASourceIsSuspendedAtAnyRecordOfAnEdge(t *testing.T) {
	t.Parallel()
	var task *flowtest.Task
	task, s := openSegments(t, define(func(g *flow.Graph) {
		countBy(g, flow.From(g, "in", numbers(10)), func(v int) string {
			task.Suspend.Store(v == 3)
			return nameOf(v)
		})
	}))
	for i, want := range []int{4, 6} { // records 0 to 3, then 4 to 9
		task.Suspend.Store(false)
		task.Poll(100)
		if got := s.records(t); len(got) != want {
			t.Errorf("poll %d: %d records, want %d", i, len(got), want)
		}
	}
	if c := task.Chain.Counts(); c[0].RecordsOut != 10 {
		t.Errorf("%+v", c)
	}
}

func TestFailuresAtAnEdgeOfASource(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", 70_000)
	for name, tt := range map[string]struct {
		key  func(v int) string
		want []string
	}{
		"key panics": {func(v int) string { return nameOf(10 / (3 - v)) }, []string{`key "by"`, "divide by zero"}},
		"long key":   {func(v int) string { return long[:1+v/3*70_000-v/3] }, []string{`key "by"`, "a key has at most"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task, s := openSegments(t, define(func(g *flow.Graph) { countBy(g, flow.From(g, "in", numbers(10)), tt.key) }))
			_, err := task.Chain.Poll(100)
			if err == nil {
				t.Fatal("no failure")
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("got %v, want %q in it", err, part)
				}
			}
			if got := s.records(t); len(got) != 3 {
				t.Errorf("%d records before it, want 3", len(got))
			}
		})
	}
}
