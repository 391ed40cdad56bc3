package flowtest

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/statebackend"
	"github.com/weirflow/weir/statebackend/heap"
)

// Options say which task of a job is opened, and from what.
type Options struct {
	Operator    string // any operator of the task; default: the job's first
	Subtask     int
	Parallelism int       // of operators that name none; default 1
	Restore     *Snapshot // what to resume from
	Start       time.Time // of the clock of timers; default: the Unix epoch
}

// At names the task of an operator.
func At(operator string) Options { return Options{Operator: operator} }

// Task is one subtask of a vertex.
type Task struct {
	Chain   operator.Chain
	Graph   *jobgraph.JobGraph
	Vertex  *jobgraph.Vertex
	Env     *operator.Env
	Outputs []*Output // in the order of Vertex.Outputs
	Suspend atomic.Bool
	Wakes   atomic.Int64 // calls of Env.Wake
	// Counters and Gauges are the user's metrics, by operator and name.
	Counters map[string]*Counter
	Gauges   map[string]*Gauge

	t        testing.TB
	program  operator.Program
	options  Options
	pool     *heap.PagePool
	backends map[weir.OperatorID]statebackend.Backend
	timers   map[weir.OperatorID]*timers
	now      time.Time
	batch    operator.Batch
}

// Open builds a job, compiles it and opens one task. The test fails if that fails;
// the task is closed when the test ends.
func Open(t testing.TB, job flow.Job, params map[string]string, o Options) *Task {
	t.Helper()
	task := New(t, job, params, o)
	if err := task.Chain.Open(task.Env); err != nil {
		t.Fatalf("open: %v", err)
	}
	return task
}

// New is [Open] without opening the chain.
func New(t testing.TB, job flow.Job, params map[string]string, o Options) *Task {
	t.Helper()
	p, err := job.Build(params)
	if err != nil {
		t.Fatalf("build: %v", err)
	}
	g, err := jobgraph.Compile(p.Logical(), jobgraph.Options{Parallelism: o.Parallelism})
	if err != nil {
		t.Fatalf("compile: %v", err)
	}
	task := &Task{
		Graph: g, t: t, program: p, options: o, now: o.Start, pool: heap.NewPagePool(1 << 20),
		Counters: make(map[string]*Counter), Gauges: make(map[string]*Gauge),
		backends: make(map[weir.OperatorID]statebackend.Backend), timers: make(map[weir.OperatorID]*timers),
	}
	if task.now.IsZero() {
		task.now = time.UnixMilli(0)
	}
	for i := range g.Vertices {
		for _, name := range g.Vertices[i].Operators {
			if o.Operator == "" || o.Operator == name {
				task.Vertex = &g.Vertices[i]
			}
		}
		if task.Vertex != nil {
			break
		}
	}
	if task.Vertex == nil {
		t.Fatalf("no operator is called %q", o.Operator)
	}
	if task.Chain, err = p.NewChain(task.Vertex, g); err != nil {
		t.Fatalf("chain: %v", err)
	}
	task.makeEnv()
	t.Cleanup(task.close)
	return task
}

func (k *Task) makeEnv() {
	v, o := k.Vertex, k.options
	k.Env = &operator.Env{
		JobName:        k.Graph.Name,
		Attempt:        weir.AttemptID{Vertex: int32(v.Index), Subtask: int32(o.Subtask), N: 1},
		Vertex:         v.Name,
		Subtask:        o.Subtask,
		Parallelism:    v.Parallelism,
		MaxParallelism: v.MaxParallelism,
		KeyGroups:      weir.KeyGroupRangeOf(v.MaxParallelism, v.Parallelism, o.Subtask),
		Suspend:        &k.Suspend,
		Wake:           func() { k.Wakes.Add(1) },
		Backend:        k.backend,
		Timers:         k.timerService,
		Restored:       k.restored,
		Splits:         k.splits,
		SendEvent:      func(weir.OperatorID, []byte) {},
		Metrics:        func(name string) operator.Metrics { return metrics{k, name} },
	}
	for _, e := range v.Outputs {
		edge := k.Graph.Edges[e]
		out := &Output{Edge: edge, Consumers: k.Graph.Vertices[edge.To].Parallelism}
		k.Outputs = append(k.Outputs, out)
		k.Env.Outputs = append(k.Env.Outputs, out)
	}
}

func (k *Task) close() {
	if err := k.Chain.Close(); err != nil {
		k.t.Errorf("close: %v", err)
	}
	for _, b := range k.backends {
		if err := b.Close(); err != nil {
			k.t.Errorf("close backend: %v", err)
		}
	}
}

func (k *Task) backend(op weir.OperatorID) (statebackend.Backend, error) {
	if b := k.backends[op]; b != nil {
		return b, nil
	}
	b, err := heap.NewFactory(k.pool).New(statebackend.Options{MaxParallelism: k.Env.MaxParallelism, KeyGroups: k.Env.KeyGroups})
	if err != nil {
		return nil, err
	}
	if r := k.options.Restore; r != nil && r.Keyed[op] != nil {
		if err := b.Restore(context.Background(), r.Keyed[op], openInline); err != nil {
			return nil, err
		}
	}
	k.backends[op] = b
	return b, nil
}

func (k *Task) restored(op weir.OperatorID) ([][]byte, bool) {
	if k.options.Restore == nil {
		return nil, false
	}
	all, ok := k.options.Restore.Operators[op]
	var elements [][]byte
	for i := k.options.Subtask; i < len(all); i += k.Vertex.Parallelism {
		elements = append(elements, all[i])
	}
	return elements, ok
}

// splits asks the source's enumerator, as the JobManager does before it deploys.
func (k *Task) splits(weir.OperatorID) [][]byte {
	e, err := k.program.NewEnumerator(k.Vertex.Operators[0])
	if err != nil {
		k.t.Fatal(err)
	}
	all, err := e.Assign(context.Background(), k.Vertex.Parallelism)
	if err != nil {
		k.t.Fatalf("assign splits: %v", err)
	}
	return all[k.options.Subtask]
}

// Now is the time of the task's timers.
func (k *Task) Now() time.Time { return k.now }

// Advance moves the clock and fires the timers that are due, in order.
func (k *Task) Advance(d time.Duration) error {
	k.now = k.now.Add(d)
	for _, op := range k.Vertex.IDs {
		if s := k.timers[op]; s != nil {
			if err := s.fireDue(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Emitted returns and forgets what the task's only output was given.
func (k *Task) Emitted() []Record {
	k.t.Helper()
	if len(k.Outputs) != 1 {
		k.t.Fatalf("the task has %d outputs", len(k.Outputs))
	}
	return k.Outputs[0].Take()
}

// Poll lets the source emit.
func (k *Task) Poll(limit int) operator.SourceStatus {
	k.t.Helper()
	s, err := k.Chain.Poll(limit)
	if err != nil {
		k.t.Fatalf("poll: %v", err)
	}
	return s
}

// Feed gives records to the task's first input: see [Task.FeedInput].
func (k *Task) Feed(records []Record) error { return k.FeedInput(0, records) }

// FeedInput runs the records that belong to this subtask's key groups, or all if the
// input has no keys, in batches of the largest size; Suspend is not looked at between
// them.
func (k *Task) FeedInput(input int, records []Record) error {
	keyed := k.Graph.Edges[k.Vertex.Inputs[input]].Partitioning == jobgraph.Hash
	b := &k.batch
	for len(records) > 0 {
		b.Input, b.N, b.Next = input, 0, 0
		for len(records) > 0 && b.N < operator.BatchSize {
			r := records[0]
			records = records[1:]
			if keyed && !k.Env.KeyGroups.Contains(weir.KeyGroupOf(r.Hash, k.Env.MaxParallelism)) {
				continue
			}
			b.Hash[b.N], b.Timestamp[b.N], b.Payload[b.N] = r.Hash, r.Timestamp, r.Payload
			b.N++
		}
		for b.Next < b.N {
			if err := k.Chain.Process(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// MustFeed is [Task.Feed], and fails the test on an error.
func (k *Task) MustFeed(records []Record) {
	k.t.Helper()
	if err := k.Feed(records); err != nil {
		k.t.Fatalf("process: %v", err)
	}
}

// MustFeedInput is [Task.FeedInput], and fails the test on an error.
func (k *Task) MustFeedInput(input int, records []Record) {
	k.t.Helper()
	if err := k.FeedInput(input, records); err != nil {
		k.t.Fatalf("process: %v", err)
	}
}

// States returns the entries of a keyed state: encoded key to encoded value.
func (k *Task) States(op, state string, d statebackend.Descriptor) map[string]string {
	k.t.Helper()
	b := k.backends[weir.OperatorIDOf(op)]
	if b == nil {
		k.t.Fatalf("operator %q has no state", op)
	}
	d.Name = state
	table, err := b.Table(d)
	if err != nil {
		k.t.Fatal(err)
	}
	entries := make(map[string]string)
	table.Scan(func(_ weir.KeyGroup, key, _, value []byte) bool {
		entries[string(key)] = string(value)
		return true
	})
	return entries
}
