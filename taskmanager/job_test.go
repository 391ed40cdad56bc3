package taskmanager_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/codec"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/statebackend"
)

// catalog holds the one job of these tests: numbers, keyed by number modulo keys, are
// counted. What it does wrong is the test's choice.
type catalog struct {
	limit    int           // numbers per source subtask; then it ends, or stays silent
	silent   bool          // stays alive after its last number
	size     int           // bytes of a record
	interval time.Duration // between two numbers of a source; 0: as fast as it can
	perCount time.Duration // that counting one takes
	// process is called for each record before it is counted.
	process func(subtask int, number uint64) error
	// notify is called when the counting subtask is told how a checkpoint ended.
	notify func()
	build  func(ctx context.Context) error
	edit   func(l *jobgraph.Logical)
	timers bool // each counted record sets a timer a second later
	// dueTimers are set when a subtask starts that counts, and due then; one takes perTimer.
	dueTimers int
	perTimer  time.Duration

	mu     sync.Mutex
	counts map[uint64]uint64 // of all keys, by subtasks that were closed
	sums   uint64            // of all numbers counted
	fired  []time.Duration   // times between a record and its timer
	told   []string          // notifications
	events []string          // of coordinators
	ends   []string          // of data
}

func newCatalog() *catalog {
	return &catalog{limit: 1000, size: 100, counts: map[uint64]uint64{}}
}

const keys = 16

func logical(p, q int) *jobgraph.Logical {
	return &jobgraph.Logical{Entrypoint: "job", Operators: []jobgraph.Operator{
		{Name: "numbers", Kind: jobgraph.KindSource, Out: "uint64", Parallelism: p},
		{Name: "count", Kind: jobgraph.KindProcess, In: "uint64", Parallelism: q, MaxParallelism: 128,
			Inputs: []jobgraph.Input{{From: "numbers", Partitioning: jobgraph.Hash, Key: "uint64", Codec: "uint64"}},
			States: []jobgraph.State{{Name: "n", Kind: "value", Key: "uint64", Value: "uint64"}}},
	}}
}

func (c *catalog) Entrypoints() []operator.Entrypoint { return []operator.Entrypoint{{Name: "job"}} }

func (c *catalog) Build(ctx context.Context, entrypoint string, _ map[string]string) (operator.Program, error) {
	if entrypoint != "job" {
		return nil, fmt.Errorf("%w: %q; there is: job", operator.ErrUnknownEntrypoint, entrypoint)
	}
	if c.build != nil {
		if err := c.build(ctx); err != nil {
			return nil, err
		}
	}
	l := logical(1, 1)
	if c.edit != nil {
		c.edit(l)
	}
	return &program{c, l}, nil
}

type program struct {
	c       *catalog
	logical *jobgraph.Logical
}

func (p *program) Logical() *jobgraph.Logical                        { return p.logical }
func (p *program) NewEnumerator(string) (operator.Enumerator, error) { return nil, nil }
func (p *program) NewChain(v *jobgraph.Vertex, _ *jobgraph.JobGraph) (operator.Chain, error) {
	if v.Source {
		return &numbers{nop: nop{c: p.c}}, nil
	}
	return &counter{nop: nop{c: p.c}}, nil
}

// nop is a chain that does nothing.
type nop struct {
	c   *catalog
	env *operator.Env
}

func (n *nop) Borrows() bool                                             { return false }
func (n *nop) Process(*operator.Batch) error                             { return nil }
func (n *nop) Poll(int) (operator.SourceStatus, error)                   { return operator.SourceEnd, nil }
func (n *nop) Watermark(weir.Watermark) error                            { return n.ended("watermark") }
func (n *nop) Status(bool) error                                         { return nil }
func (n *nop) PrepareSnapshot(weir.CheckpointID) error                   { return nil }
func (n *nop) SnapshotState(weir.CheckpointID) ([]operator.State, error) { return nil, nil }
func (n *nop) EndOfInput(i int) error                                    { return n.ended(fmt.Sprint("end of input ", i)) }
func (n *nop) Finish() error                                             { return n.ended("finish") }
func (n *nop) Close() error                                              { return nil }
func (n *nop) Counts() []operator.Counts                                 { return nil }
func (n *nop) NotifyComplete(id weir.CheckpointID) error                 { return n.told("complete %d", id) }
func (n *nop) NotifyAborted(id weir.CheckpointID) error                  { return n.told("aborted %d", id) }

func (n *nop) told(format string, id weir.CheckpointID) error {
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	n.c.told = append(n.c.told, fmt.Sprintf("%s "+format, n.env.Vertex, id))
	return nil
}

func (n *nop) ended(how string) error {
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	n.c.ends = append(n.c.ends, n.env.Vertex+" "+how)
	return nil
}

func (n *nop) HandleEvent(_ weir.OperatorID, event []byte) error {
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	n.c.events = append(n.c.events, string(event))
	return nil
}

// numbers emits 0, 1, 2 … and remembers how far it is.
type numbers struct {
	nop
	next    int
	due     time.Time
	payload []byte
}

func (s *numbers) Open(env *operator.Env) error {
	s.env = env
	s.payload = make([]byte, max(8, s.c.size))
	s.due = time.Now()
	elements, _ := env.Restored(weir.OperatorIDOf("numbers"))
	for _, e := range elements {
		s.next = int(binary.LittleEndian.Uint64(e))
	}
	return nil
}

func (s *numbers) Poll(most int) (operator.SourceStatus, error) {
	for range most {
		if s.next == s.c.limit {
			if s.c.silent {
				return operator.SourceEmpty, nil
			}
			return operator.SourceEnd, nil
		}
		if s.env.Suspend.Load() {
			return operator.SourceMore, nil
		}
		if s.c.interval > 0 {
			if wait := time.Until(s.due); wait > 0 {
				time.AfterFunc(wait, s.env.Wake)
				return operator.SourceEmpty, nil
			}
			s.due = s.due.Add(s.c.interval)
		}
		binary.LittleEndian.PutUint64(s.payload, uint64(s.next))
		key := binary.LittleEndian.AppendUint64(nil, uint64(s.next%keys))
		s.env.Outputs[0].Emit(codec.Hash(key), operator.NoTimestamp, s.payload)
		s.next++
	}
	return operator.SourceMore, nil
}

func (s *numbers) Watermark(w weir.Watermark) error {
	s.env.Outputs[0].Watermark(w)
	return nil
}

func (s *numbers) SnapshotState(weir.CheckpointID) ([]operator.State, error) {
	return []operator.State{{
		Operator: weir.OperatorIDOf("numbers"), Name: "numbers",
		Elements: [][]byte{binary.LittleEndian.AppendUint64(nil, uint64(s.next))},
	}}, nil
}

// counter counts numbers by key.
type counter struct {
	nop
	table  statebackend.Table
	timers operator.TimerService
}

func (n *counter) NotifyComplete(id weir.CheckpointID) error { return n.hear(n.nop.NotifyComplete, id) }
func (n *counter) NotifyAborted(id weir.CheckpointID) error  { return n.hear(n.nop.NotifyAborted, id) }

func (n *counter) hear(hear func(weir.CheckpointID) error, id weir.CheckpointID) error {
	if n.c.notify != nil {
		n.c.notify()
	}
	return hear(id)
}

// Told names an operator of the chain.
func (n *counter) Told() string { return "commit" }

func (n *counter) Open(env *operator.Env) error {
	n.env = env
	id := weir.OperatorIDOf("count")
	b, err := env.Backend(id)
	if err != nil {
		return err
	}
	if n.table, err = b.Table(statebackend.Descriptor{Name: "n", FixedSize: 16}); err != nil {
		return err
	}
	n.timers, err = env.Timers(id, func(_ uint64, _ []byte, at int64) error {
		if n.c.perTimer > 0 {
			<-time.After(n.c.perTimer)
		}
		n.c.mu.Lock()
		defer n.c.mu.Unlock()
		n.c.fired = append(n.c.fired, time.Since(time.UnixMilli(at)))
		return nil
	})
	for i := 0; err == nil && i < n.c.dueTimers; i++ {
		key := binary.LittleEndian.AppendUint64(nil, uint64(i))
		n.timers.Register(codec.Hash(key), key, n.timers.Now()-1)
	}
	return err
}

func (n *counter) Process(b *operator.Batch) error {
	for ; b.Next < b.N && !n.env.Suspend.Load(); b.Next++ {
		number := binary.LittleEndian.Uint64(b.Payload[b.Next])
		if n.c.process != nil {
			if err := n.c.process(n.env.Subtask, number); err != nil {
				return err
			}
		}
		if n.c.perCount > 0 {
			<-time.After(n.c.perCount)
		}
		key := binary.LittleEndian.AppendUint64(nil, number%keys)
		v, _ := n.table.Slot(statebackend.Ref{Hash: codec.Hash(key), Key: key}, statebackend.Hint{})
		binary.LittleEndian.PutUint64(v, binary.LittleEndian.Uint64(v)+1)
		binary.LittleEndian.PutUint64(v[8:], binary.LittleEndian.Uint64(v[8:])+number)
		if n.c.timers {
			n.timers.Register(codec.Hash(key), key, n.timers.Now()+1000)
		}
	}
	return nil
}

// Close adds what was counted to the catalog's.
func (n *counter) Close() error {
	if n.table == nil {
		return nil
	}
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	n.table.Scan(func(_ weir.KeyGroup, key, _, value []byte) bool {
		n.c.counts[binary.LittleEndian.Uint64(key)] += binary.LittleEndian.Uint64(value)
		n.c.sums += binary.LittleEndian.Uint64(value[8:])
		return true
	})
	return nil
}
