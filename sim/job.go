package sim

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/sim/randomjob"
)

// Names of the job and its operators.
const (
	entrypoint = "numbers"
	opSource   = "numbers"
	opTag      = "tag"
	opCount    = "count"
	opNote     = "note"
	stateTally = "tally"
	// stateTimers is where package flow keeps timers.
	stateTimers = "weir/processing-timers"
)

// Number is a record: the n-th number of a split.
type Number struct {
	Split, N, Key int64
	Tag           int64 // given by the mapper
	Pad           []byte
}

// Tally is the state of a key.
type Tally struct {
	Count, Sum int64
	Fired      int64 // how often its timer has
}

// Counted is what the counters emit for each number.
type Counted struct {
	Key, Count int64
	Pad        []byte
}

// job is one of the two jobs of a life, with what the world does to its user code.
type job struct {
	plan   JobPlan
	oracle *Oracle
	// fuse is how many records are counted until the operator fails; 0: it does not.
	fuse  atomic.Int64
	panic atomic.Bool
}

// say notes what a client has heard.
func (w *World) say(what string) { w.said.Store(&what) }

func (w *World) heard() string {
	if s := w.said.Load(); s != nil {
		return "  the job, as clients see it: " + *s
	}
	return "  no client heard of the job"
}

// jobParams choose between the two: the second starts from a checkpoint of the first.
type jobParams struct {
	Second bool
}

// newCatalog returns the entry points that all processes have.
func newCatalog(first, second *job) (operator.Catalog, error) {
	return flow.NewCatalog(flow.Define(entrypoint, func(g *flow.Graph, p jobParams) error {
		if p.Second {
			return second.build(g)
		}
		return first.build(g)
	}), randomjob.Job)
}

func (j *job) build(g *flow.Graph) error {
	p := j.plan
	tagging := []flow.Option{flow.Parallelism(p.Mappers)}
	noting := []flow.Option{flow.Parallelism(p.Notes)}
	if !p.Chained {
		tagging, noting = append(tagging, flow.DisableChaining()), append(noting, flow.StartNewChain())
	}
	numbers := flow.From(g, opSource, numberSource{j}, flow.Parallelism(p.Sources))
	tagged := flow.Map(numbers, opTag, func(n Number) Number { n.Tag = tagOf(n.Split, n.N); return n }, tagging...)
	byKey := flow.KeyBy(tagged, "by-key", func(n Number) int64 { return n.Key })
	counted := flow.Process(byKey, opCount, j.counter, flow.Parallelism(p.Counters))
	noted := flow.MapWith(counted, opNote, &noter{j: j}, noting...)
	flow.To(noted, "drop", flow.Discard[Counted](), flow.Parallelism(p.Notes))
	return nil
}

// fail makes the counters fail after some more records.
func (j *job) fail(panics bool, after int) {
	j.panic.Store(panics)
	j.fuse.Store(int64(after) + 1)
}

func (j *job) heal() { j.fuse.Store(0) }

// mix is a hash of a number, so that exchanging two records is noticed.
func mix(split, n int64) uint64 {
	x := uint64(split)*0x9E3779B97F4A7C15 + uint64(n) + 0x632BE59BD9B4E019
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

func (p JobPlan) keyOf(split, n int64) int64 { return int64(mix(split, n) % uint64(p.Keys)) }
func tagOf(split, n int64) int64             { return int64(mix(split, n) >> 40) }

func (p JobPlan) padOf(split, n int64) []byte {
	size := p.Pad
	if p.BigPad > 0 && int(mix(split, n)>>8%uint64(p.BigEvery)) == 0 {
		size = p.BigPad
	}
	pad := make([]byte, size)
	for i := range pad {
		pad[i] = byte(n) + byte(i)
	}
	return pad
}

// expect is the closed form: the tallies after the first numbers of each split.
func (p JobPlan) expect(positions map[int64]int64) map[int64]Tally {
	tallies := make(map[int64]Tally)
	for split, next := range positions {
		for n := range next {
			key := p.keyOf(split, n)
			t := tallies[key]
			t.Count++
			t.Sum += tagOf(split, n)
			tallies[key] = t
		}
	}
	return tallies
}

// position is a split with how far it was read, as readers keep it.
type position struct{ split, next int64 }

func (p position) encode() []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(p.split))
	return binary.LittleEndian.AppendUint64(b, uint64(p.next))
}

func decodePosition(b []byte) (position, error) {
	if len(b) != 16 {
		return position{}, fmt.Errorf("a split of %d bytes", len(b))
	}
	return position{int64(binary.LittleEndian.Uint64(b)), int64(binary.LittleEndian.Uint64(b[8:]))}, nil
}

// numberSource deals its splits to the readers.
type numberSource struct{ j *job }

func (s numberSource) Enumerator() operator.Enumerator {
	return flow.StaticSplits(func(parallelism int) ([][][]byte, error) {
		dealt := make([][][]byte, parallelism)
		for i := range s.j.plan.Splits {
			dealt[i%parallelism] = append(dealt[i%parallelism], position{split: int64(i)}.encode())
		}
		return dealt, nil
	})
}

func (s numberSource) Reader() flow.Reader[Number] { return &numberReader{j: s.j} }

// numberReader emits a burst of numbers, then pauses. At the end it stays.
type numberReader struct {
	j      *job
	splits []position
	turn   int
	left   int // of the burst
	wake   func()
	clock  *group.Group
	timer  *group.Timer
	rested atomic.Bool // the pause is over
}

// Open starts the reader's clock.
func (r *numberReader) Open(rt *flow.Runtime) error {
	r.wake, r.left = rt.Wake, r.j.plan.Burst
	r.clock = group.New(context.Background(), "numbers")
	return nil
}

// Close stops it.
func (r *numberReader) Close() error {
	if r.clock == nil {
		return nil
	}
	return r.clock.Stop(context.Background())
}

// AddSplits takes splits, new or restored.
func (r *numberReader) AddSplits(splits [][]byte) error {
	for _, b := range splits {
		p, err := decodePosition(b)
		if err != nil {
			return err
		}
		r.splits = append(r.splits, p)
	}
	return nil
}

// Poll emits what is left of the burst, from the splits in turn.
func (r *numberReader) Poll(emit func(int64, Number) bool) (operator.SourceStatus, error) {
	for r.left > 0 {
		p := r.next()
		if p == nil && r.j.plan.Ends {
			return operator.SourceEnd, nil
		}
		if p == nil {
			return operator.SourceEmpty, nil // for ever: the oracle needs a checkpoint after the end
		}
		n := Number{Split: p.split, N: p.next, Key: r.j.plan.keyOf(p.split, p.next), Pad: r.j.plan.padOf(p.split, p.next)}
		p.next++
		r.left--
		if !emit(operator.NoTimestamp, n) {
			return operator.SourceMore, nil
		}
	}
	switch {
	case r.timer == nil:
		r.timer = r.clock.AfterFunc("wake", r.j.plan.Pause, func(context.Context) { r.rested.Store(true); r.wake() })
	case r.rested.Swap(false):
		r.left, r.timer = r.j.plan.Burst, nil
		return operator.SourceMore, nil
	}
	return operator.SourceEmpty, nil
}

// next returns the next split that has numbers left, or nil.
func (r *numberReader) next() *position {
	for range r.splits {
		p := &r.splits[r.turn%len(r.splits)]
		r.turn++
		if p.next < int64(r.j.plan.Numbers) {
			return p
		}
	}
	return nil
}

// Snapshot returns the positions.
func (r *numberReader) Snapshot() ([][]byte, error) {
	splits := make([][]byte, len(r.splits))
	for i, p := range r.splits {
		splits[i] = p.encode()
	}
	return splits, nil
}

// counter counts numbers by key; each key's timer fires a few times.
type counter struct {
	j     *job
	tally *flow.Value[Tally]
}

func (j *job) counter(s *flow.Setup) flow.Processor[int64, Number, Counted] {
	return &counter{j: j, tally: flow.NewValue[Tally](s, stateTally)}
}

var errUser = errors.New("simulated failure of user code")

func (c *counter) Process(ctx *flow.Context[int64], n Number, out *flow.Out[Counted]) error {
	if c.j.fuse.Load() > 0 && c.j.fuse.Add(-1) == 0 {
		if c.j.panic.Load() {
			panic(errUser)
		}
		return errUser
	}
	if err := c.j.check(n); err != nil {
		c.j.oracle.w.wrong("counter got a record that nobody sent: %v", err)
		return err
	}
	t := c.tally.Get()
	if t.Count == 0 {
		ctx.SetTimer(ctx.Now().Add(c.j.plan.TimerEvery))
	}
	t.Count++
	t.Sum += n.Tag
	c.tally.Set(t)
	out.Emit(Counted{Key: n.Key, Count: t.Count, Pad: n.Pad})
	return nil
}

// check compares a record with what was sent.
func (j *job) check(n Number) error {
	p := j.plan
	want := p.padOf(n.Split, n.N)
	if n.Key != p.keyOf(n.Split, n.N) || n.Tag != tagOf(n.Split, n.N) || string(n.Pad) != string(want) {
		return fmt.Errorf("split %d, number %d, key %d, tag %d, %d bytes", n.Split, n.N, n.Key, n.Tag, len(n.Pad))
	}
	return nil
}

// OnTimer counts, and sets the next one.
func (c *counter) OnTimer(ctx *flow.Context[int64], at time.Time, _ *flow.Out[Counted]) error {
	if ctx.Now().Before(at) {
		c.j.oracle.w.wrong("timer of %s fired at %s", at, ctx.Now())
	}
	t := c.tally.Get()
	t.Fired++
	c.tally.Set(t)
	if t.Fired < int64(c.j.plan.Timers) {
		ctx.SetTimer(ctx.Now().Add(c.j.plan.TimerEvery))
	}
	return nil
}

// noter counts what the counters emit, and is told of checkpoints.
type noter struct {
	j        *job
	runtime  *flow.Runtime
	seen     int64
	complete weir.CheckpointID // the last it was told of
	aborted  map[weir.CheckpointID]bool
}

func (n *noter) Open(r *flow.Runtime) error {
	n.runtime, n.aborted = r, make(map[weir.CheckpointID]bool)
	return nil
}

func (n *noter) Map(c Counted) (Counted, error) {
	n.seen++
	return c, nil
}

func (n *noter) SnapshotState() ([][]byte, error) {
	return [][]byte{binary.LittleEndian.AppendUint64(nil, uint64(n.seen))}, nil
}

func (n *noter) RestoreState(elements [][]byte) error {
	for _, e := range elements {
		if len(e) != 8 {
			return fmt.Errorf("an element of %d bytes", len(e))
		}
		n.seen += int64(binary.LittleEndian.Uint64(e))
	}
	return nil
}

func (n *noter) NotifyComplete(id weir.CheckpointID) error {
	if id <= n.complete || n.aborted[id] {
		n.j.oracle.w.wrong("subtask %d was told that checkpoint %d is complete after %d was, and %d aborted: %v", n.runtime.Subtask(), id, n.complete, id, n.aborted[id])
	}
	n.complete = id
	n.j.oracle.told(id, true)
	return nil
}

func (n *noter) NotifyAborted(id weir.CheckpointID) error {
	if id <= n.complete {
		n.j.oracle.w.wrong("subtask %d was told that checkpoint %d was aborted after %d was complete", n.runtime.Subtask(), id, n.complete)
	}
	n.aborted[id] = true
	n.j.oracle.told(id, false)
	return nil
}
