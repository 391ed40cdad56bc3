package jobmaster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/jobmanager/joboption"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/snapshotmeta"
)

// chainOf is a logical graph of a source, operators, and a sink, each reading the one
// before it by this partitioning.
func chainOf(parts ...jobgraph.Partitioning) *jobgraph.Logical {
	l := &jobgraph.Logical{Entrypoint: "e", Operators: []jobgraph.Operator{{Name: "op0", Kind: jobgraph.KindSource, Out: "T"}}}
	for i, p := range parts {
		l.Operators = append(l.Operators, operatorReading(i+1, inputBy(fmt.Sprint("op", i), p)))
	}
	return l
}

func operatorReading(i int, inputs ...jobgraph.Input) jobgraph.Operator {
	return jobgraph.Operator{Name: fmt.Sprint("op", i), Kind: jobgraph.KindProcess, Inputs: inputs, In: "T", Out: "T"}
}

func inputBy(from string, p jobgraph.Partitioning) jobgraph.Input {
	in := jobgraph.Input{From: from, Partitioning: p, Codec: "T"}
	if p == jobgraph.Hash {
		in.Key = "string"
	}
	if p == jobgraph.Custom {
		in.Partitioner = "by-user"
	}
	return in
}

// compiled is a plan in which the operators have these parallelisms.
func compiled(t fataler, l *jobgraph.Logical, parallelism []int) *jobgraph.JobGraph {
	for i := range l.Operators {
		l.Operators[i].Parallelism = parallelism[i]
	}
	g, err := jobgraph.Compile(l, jobgraph.Options{Name: "job"})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return g
}

type fataler interface {
	Fatalf(format string, args ...any)
}

// snapshotOf is a snapshot of a plan in which nothing has state.
func snapshotOf(g *jobgraph.JobGraph, l *jobgraph.Logical) *snapshotmeta.Snapshot {
	return snapshotmeta.New(snapshotmeta.Header{Job: testJob, Checkpoint: 1, GraphText: l.Text(), Vertices: snapshotmeta.Vertices(g)})
}

// capture adds what one end of a channel of an edge captured. Its file tells which.
func capture(s *snapshotmeta.Snapshot, e *jobgraph.Edge, side weir.ChannelSide, producer, consumer int) {
	s.Channels = append(s.Channels, weir.ChannelStateHandle{
		Edge: weir.EdgeID{From: e.FromOperator, To: e.ToOperator, Input: int32(e.Input)},
		Side: side, Producer: int32(producer), Consumer: int32(consumer),
		Handle: weir.StateHandle{File: fmt.Sprintf("%s-%s-%d-%d-%d-%d", e.FromOperator, e.ToOperator, e.Input, producer, consumer, side), Length: 1},
	})
}

// apart is l with these operators at the start of a chain.
func apart(l *jobgraph.Logical, operators []string) *jobgraph.Logical {
	c := &jobgraph.Logical{Entrypoint: l.Entrypoint, Operators: slices.Clone(l.Operators)}
	for _, name := range operators {
		c.Operator(name).Chaining = jobgraph.ChainStart
	}
	return c
}

// restored is a plan at other parallelism that fits the snapshot.
func restored(t fataler, l *jobgraph.Logical, parallelism []int, s *snapshotmeta.Snapshot) *jobgraph.JobGraph {
	g := compiled(t, l, parallelism)
	if names := KeepApart(g, s); len(names) > 0 {
		g = compiled(t, apart(l, names), parallelism)
	}
	AdoptMaxParallelism(g, s)
	if err := CheckRestore(g, l.Text(), s, joboption.Recovery{}); err != nil {
		t.Fatalf("%v", err)
	}
	return g
}

// B01: operators without state of their own have data in flight on both sides.
func TestInFlightDataPassesThroughStatelessOperators(t *testing.T) {
	t.Parallel()
	l := chainOf(jobgraph.Rebalance, jobgraph.Hash)
	old := compiled(t, l, []int{2, 2, 2})
	s := snapshotOf(old, l)
	for i := range old.Edges {
		for p := range 2 {
			for c := range 2 {
				capture(s, &old.Edges[i], weir.ConsumerSide, p, c)
				capture(s, &old.Edges[i], weir.ProducerSide, p, c)
			}
		}
	}
	for _, parallelism := range []int{1, 3} {
		g := restored(t, l, []int{parallelism, parallelism, parallelism}, s)
		for v, want := range []int{0, 4, 4} {
			streams := map[[2]int32]int{}
			for _, list := range recoveredChannels(g, v, exchanges(s)) {
				for _, r := range list {
					streams[[2]int32{r.Producer, r.Consumer}]++
				}
			}
			if len(streams) != want {
				t.Errorf("at %d, vertex %d recovers %v, want %d streams", parallelism, v, streams, want)
			}
		}
	}
}

// B02: whether data can be redistributed is decided per edge.
func TestAnAligningEdgeWithoutDataDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	l := chainOf(jobgraph.Rebalance)
	l.Operators = append(l.Operators, operatorReading(2, inputBy("op1", jobgraph.Hash)), operatorReading(3, inputBy("op1", jobgraph.Custom)))
	parallelism := []int{2, 2, 2, 2}
	old := compiled(t, l, parallelism)
	s := snapshotOf(old, l)
	for i := range old.Edges {
		if old.Edges[i].Partitioning == jobgraph.Hash {
			capture(s, &old.Edges[i], weir.ConsumerSide, 1, 1)
		}
	}
	g := restored(t, l, []int{4, 4, 4, 4}, s)
	reads := 0
	for v := range g.Vertices {
		for _, list := range recoveredChannels(g, v, exchanges(s)) {
			reads += len(list)
		}
	}
	if reads != 2 {
		t.Errorf("%d subtasks read the data of a consumer whose range two have now", reads)
	}
	// With data on the other edge it is refused, with the edge's name.
	for i := range old.Edges {
		if old.Edges[i].Partitioning == jobgraph.Custom {
			capture(s, &old.Edges[i], weir.ConsumerSide, 1, 1)
		}
	}
	err := CheckRestore(g, l.Text(), s, joboption.Recovery{})
	if !errors.Is(err, ErrRestore) || !strings.Contains(err.Error(), `edge "op1" to "op3"`) || strings.Contains(err.Error(), `"op2"`) {
		t.Errorf("%v", err)
	}
}

// TestRescaling holds the rules for edges that cannot be redistributed (B04).
func TestRescaling(t *testing.T) {
	t.Parallel()
	t.Run("O-RSC-03_unsupported", func(t *testing.T) {
		t.Parallel()
		for _, p := range []jobgraph.Partitioning{jobgraph.Rescale, jobgraph.Broadcast, jobgraph.Custom} {
			l := chainOf(p)
			old := compiled(t, l, []int{2, 2})
			aligned, flying := snapshotOf(old, l), snapshotOf(old, l)
			capture(flying, &old.Edges[0], weir.ConsumerSide, 0, 0)
			g := compiled(t, l, []int{2, 5})
			if err := CheckRestore(g, l.Text(), aligned, joboption.Recovery{}); err != nil {
				t.Errorf("%s without data in flight: %v", p, err)
			}
			for _, list := range recoveredChannels(g, 1, exchanges(aligned)) {
				if len(list) > 0 {
					t.Errorf("%s: recovers %v", p, list)
				}
			}
			err := CheckRestore(g, l.Text(), flying, joboption.Recovery{})
			if !errors.Is(err, ErrRestore) || !strings.Contains(err.Error(), `edge "op0" to "op1", which is partitioned by `+p.String()) {
				t.Errorf("%s: %v", p, err)
			}
			if err := CheckRestore(old, l.Text(), flying, joboption.Recovery{}); err != nil {
				t.Errorf("%s with unchanged parallelism: %v", p, err)
			}
		}
	})
}

func TestChangedEdgesWithDataInFlightAreRefused(t *testing.T) {
	t.Parallel()
	l := chainOf(jobgraph.Rebalance, jobgraph.Hash)
	old := compiled(t, l, []int{2, 2, 2})
	s := snapshotOf(old, l)
	capture(s, &old.Edges[1], weir.ConsumerSide, 0, 0)
	for name, c := range map[string]struct {
		change func(l *jobgraph.Logical)
		say    string
	}{
		"operator gone": {func(l *jobgraph.Logical) { l.Operators[2].Name = "renamed" }, `edge "op1" to "op2", and the job has no such edge`},
		"edge gone":     {func(l *jobgraph.Logical) { l.Operators[2].Inputs[0].From = "op0" }, `edge "op1" to "op2", and the job has no such edge`},
		"other key":     {func(l *jobgraph.Logical) { l.Operators[2].Inputs[0].Key = "int64" }, "whose records are not the same"},
		"other records": {func(l *jobgraph.Logical) { l.Operators[2].Inputs[0].Codec = "U" }, "whose records are not the same"},
		"not keyed":     {func(l *jobgraph.Logical) { l.Operators[2].Inputs[0] = inputBy("op1", jobgraph.Rebalance) }, "whose records are not the same"},
	} {
		changed := chainOf(jobgraph.Rebalance, jobgraph.Hash)
		c.change(changed)
		err := CheckRestore(compiled(t, changed, []int{2, 2, 2}), changed.Text(), s, joboption.Recovery{})
		if !errors.Is(err, ErrRestore) || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Operators with data between them are not fused, though their parallelism is equal now.
func TestDataInFlightKeepsOperatorsApart(t *testing.T) {
	t.Parallel()
	l := chainOf(jobgraph.Forward, jobgraph.Forward)
	old := compiled(t, l, []int{2, 3, 3}) // op1 and op2 are fused
	s := snapshotOf(old, l)
	for c := range 3 {
		capture(s, &old.Edges[0], weir.ProducerSide, 1, c)
	}
	if err := CheckRestore(compiled(t, l, []int{2, 2, 2}), l.Text(), s, joboption.Recovery{}); !errors.Is(err, ErrRestore) {
		t.Errorf("fused: %v", err)
	}
	g := restored(t, l, []int{2, 2, 2}, s)
	if len(g.Vertices) != 2 || g.Edges[0].Partitioning != jobgraph.Forward {
		t.Fatalf("vertices %+v", g.Vertices)
	}
	recovered := recoveredChannels(g, 1, exchanges(s))
	if len(recovered[0]) != 2 || len(recovered[1]) != 1 || recovered[1][0].Consumer != 1 {
		t.Errorf("recovered %+v", recovered)
	}
}

// TestEveryStreamIsRecoveredOnce takes a random graph at random parallelism with random
// data in flight to another parallelism, and follows records of every key group.
func TestEveryStreamIsRecoveredOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := randomLogical(t)
		draw := func(name string) []int {
			n := len(l.Operators)
			return rapid.SliceOfN(rapid.IntRange(1, 5), n, n).Draw(t, name)
		}
		old := compiled(t, l, draw("old"))
		s := snapshotOf(old, l)
		for i := range old.Edges {
			captureRandomly(t, s, old, &old.Edges[i])
		}
		g := restored(t, l, draw("new"), s)
		streams := map[weir.EdgeID]map[[2]int32][]int{} // readers of each
		for v := range g.Vertices {
			for n, list := range recoveredChannels(g, v, exchanges(s)) {
				checkOrder(t, list)
				for _, r := range list {
					e := &g.Edges[g.Vertices[v].Inputs[r.Gate]]
					checkRecovered(t, g, e, n, r)
					id := weir.EdgeID{From: e.FromOperator, To: e.ToOperator, Input: int32(e.Input)}
					if streams[id] == nil {
						streams[id] = map[[2]int32][]int{}
					}
					key := [2]int32{r.Producer, r.Consumer}
					streams[id][key] = append(streams[id][key], n)
				}
			}
		}
		for _, c := range s.Channels {
			checkReaders(t, g, old, c, streams[c.Edge][[2]int32{c.Producer, c.Consumer}])
		}
	})
}

// randomLogical is a graph whose operators read one or two of those before them.
func randomLogical(t *rapid.T) *jobgraph.Logical {
	l := chainOf()
	for i := range rapid.IntRange(1, 4).Draw(t, "operators") {
		var inputs []jobgraph.Input
		for range rapid.IntRange(1, 2).Draw(t, "inputs") {
			from := rapid.IntRange(0, i).Draw(t, "from")
			inputs = append(inputs, inputBy(fmt.Sprint("op", from), jobgraph.Partitioning(rapid.IntRange(0, int(jobgraph.Custom)).Draw(t, "partitioning"))))
		}
		l.Operators = append(l.Operators, operatorReading(i+1, inputs...))
	}
	return l
}

// captureRandomly captures data of some channels, if the edge does not align.
func captureRandomly(t *rapid.T, s *snapshotmeta.Snapshot, g *jobgraph.JobGraph, e *jobgraph.Edge) {
	if g.Aligning()[e.To] {
		return
	}
	for p := range g.Vertices[e.From].Parallelism {
		for c := range g.Vertices[e.To].Parallelism {
			for side := range weir.ProducerSide + 1 {
				if rapid.IntRange(0, 2).Draw(t, "captured") > 0 {
					capture(s, e, side, p, c)
				}
			}
		}
	}
}

// checkOrder: by gate, old consumer, old producer.
func checkOrder(t *rapid.T, list []rpc.RecoveredChannel) {
	if !slices.IsSortedFunc(list, func(a, b rpc.RecoveredChannel) int {
		return slices.Compare([]int{a.Gate, int(a.Consumer), int(a.Producer)}, []int{b.Gate, int(b.Consumer), int(b.Producer)})
	}) {
		t.Fatalf("order %+v", list)
	}
}

// checkRecovered: the handles are those of the stream, the consumer's first; the channel
// that takes the old one's place leads to the same producer.
func checkRecovered(t *rapid.T, g *jobgraph.JobGraph, e *jobgraph.Edge, n int, r rpc.RecoveredChannel) {
	prefix := fmt.Sprintf("%s-%s-%d-%d-%d-", e.FromOperator, e.ToOperator, e.Input, r.Producer, r.Consumer)
	last := ""
	for _, h := range r.Captured {
		if !strings.HasPrefix(h.File, prefix) || h.File <= last {
			t.Fatalf("%s captured %v", prefix, r.Captured)
		}
		last = h.File
	}
	if first, end := producersOf(g, e, n); r.Channel >= 0 && (first+r.Channel >= end || first+r.Channel != int(r.Producer)) {
		t.Fatalf("channel %d of producers [%d,%d) for old producer %d", r.Channel, first, end, r.Producer)
	}
}

// checkReaders: a record of each key group is kept by one reader, or there is one reader.
func checkReaders(t *rapid.T, g, old *jobgraph.JobGraph, c weir.ChannelStateHandle, readers []int) {
	e, was := edgeOf(g, c.Edge), edgeOf(old, c.Edge)
	if e.Partitioning != jobgraph.Hash {
		if len(readers) != 1 || readers[0] != int(c.Consumer)%g.Vertices[e.To].Parallelism {
			t.Fatalf("%s %+v is read by %v", e.Partitioning, c, readers)
		}
		return
	}
	to, from := &g.Vertices[e.To], &old.Vertices[was.To]
	owned := weir.KeyGroupRangeOf(from.MaxParallelism, from.Parallelism, int(c.Consumer))
	wanted := map[int]bool{}
	const hashes = 512
	for i := range uint64(hashes) {
		hash := i * (1 << 32 / hashes) << 32
		if !owned.Contains(weir.KeyGroupOf(hash, from.MaxParallelism)) {
			continue
		}
		owner := weir.KeyGroupOwner(weir.KeyGroupOf(hash, to.MaxParallelism), to.MaxParallelism, to.Parallelism)
		wanted[owner] = true
		if n := slices.Index(readers, owner); n < 0 {
			t.Fatalf("%+v is read by %v, not by the owner %d of a record", c, readers, owner)
		}
	}
	if len(wanted) != len(readers) {
		t.Fatalf("%+v is read by %v, of which only %v can own a record", c, readers, wanted)
	}
}

// Behaviour §17: one pointwise, broadcast or user-partitioned edge makes all edges into
// its task align, and no others.
func TestAnEdgeAlignsWithAllOthersIntoItsTask(t *testing.T) {
	t.Parallel()
	for p := jobgraph.Forward; p <= jobgraph.Custom; p++ {
		l := chainOf(jobgraph.Rebalance)
		l.Operators = append(l.Operators, operatorReading(2, inputBy("op1", jobgraph.Hash), inputBy("op0", p)), operatorReading(3, inputBy("op2", jobgraph.Hash)))
		g := compiled(t, l, []int{2, 2, 2, 2})
		want := p != jobgraph.Hash && p != jobgraph.Rebalance
		for i := range g.Edges {
			e := &g.Edges[i]
			if got := g.Aligning()[e.To]; got != (want && e.ToOperator == "op2") {
				t.Errorf("with %s: edge %q to %q aligns: %t", p, e.FromOperator, e.ToOperator, got)
			}
		}
	}
}
