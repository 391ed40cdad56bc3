package flowtest

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/netstack/partition"
	"github.com/weirflow/weir/operator"
)

// Record is a record as it was emitted.
type Record struct {
	Hash      uint64
	Timestamp int64
	Payload   []byte
	To        int // the subpartition, if the user's partitioner chose it
}

// Output remembers what was emitted, or only counts it.
type Output struct {
	Edge       jobgraph.Edge
	Consumers  int // subtasks that it leads to
	CountOnly  bool
	N, Bytes   int
	Records    []Record
	Watermarks []weir.Watermark
	Idle       bool
	// OnEmit, if set, is called with the number of records so far, this one included.
	OnEmit func(n int)
}

var _ operator.Output = (*Output)(nil)

// Emit implements [operator.Output].
func (o *Output) Emit(hash uint64, timestamp int64, payload []byte) {
	o.emit(0, hash, timestamp, payload)
}

// Appender implements [operator.Output]: there is none.
func (o *Output) Appender() *partition.Appender { return nil }

// EmitTo implements [operator.Output].
func (o *Output) EmitTo(subpartition int, timestamp int64, payload []byte) {
	o.emit(subpartition, 0, timestamp, payload)
}

// Subpartitions implements [operator.Output].
func (o *Output) Subpartitions() int { return o.Consumers }

func (o *Output) emit(to int, hash uint64, timestamp int64, payload []byte) {
	o.N++
	o.Bytes += len(payload)
	if !o.CountOnly {
		o.Records = append(o.Records, Record{hash, timestamp, slices.Clone(payload), to})
	}
	if o.OnEmit != nil {
		o.OnEmit(o.N)
	}
}

// Watermark implements [operator.Output].
func (o *Output) Watermark(w weir.Watermark) { o.Watermarks = append(o.Watermarks, w) }

// Status implements [operator.Output].
func (o *Output) Status(idle bool) { o.Idle = idle }

// Take returns and forgets the records.
func (o *Output) Take() []Record {
	r := o.Records
	o.Records = nil
	return r
}

// Counter is a user's counter.
type Counter struct{ atomic.Int64 }

// Add implements [operator.Counter].
func (c *Counter) Add(n int64) { c.Int64.Add(n) }

// Gauge is a user's gauge.
type Gauge struct{ Value float64 }

// Set implements [operator.Gauge].
func (g *Gauge) Set(v float64) { g.Value = v }

type metrics struct {
	task     *Task
	operator string
}

func (m metrics) Counter(name string) operator.Counter {
	c := new(Counter)
	m.task.Counters[m.operator+"/"+name] = c
	return c
}

func (m metrics) Gauge(name string) operator.Gauge {
	g := new(Gauge)
	m.task.Gauges[m.operator+"/"+name] = g
	return g
}

// timer is a timer of [timers].
type timer struct {
	at   int64
	key  string
	hash uint64
}

// timers are a timer service that forgets at the end.
type timers struct {
	task *Task
	set  map[timer]bool
	fire func(hash uint64, key []byte, at int64) error
}

var _ operator.TimerService = (*timers)(nil)

func (k *Task) timerService(op weir.OperatorID, fire func(hash uint64, key []byte, at int64) error) (operator.TimerService, error) {
	k.timers[op] = &timers{task: k, set: make(map[timer]bool), fire: fire}
	return k.timers[op], nil
}

func (s *timers) Register(hash uint64, key []byte, at int64) {
	s.set[timer{at, string(key), hash}] = true
}

func (s *timers) Delete(hash uint64, key []byte, at int64) {
	delete(s.set, timer{at, string(key), hash})
}

func (s *timers) Now() int64 { return s.task.now.UnixMilli() }

// fireDue fires timers until none is due, those that fired ones set included.
func (s *timers) fireDue() error {
	for {
		var due []timer
		for t := range s.set {
			if t.at <= s.Now() {
				due = append(due, t)
			}
		}
		if len(due) == 0 {
			return nil
		}
		first := slices.MinFunc(due, func(a, b timer) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.key, b.key))
		})
		delete(s.set, first)
		key := []byte(first.key)
		if err := s.fire(first.hash, key, first.at); err != nil {
			return err
		}
		for i := range key { // the task's bytes are recycled
			key[i] = 0xdd
		}
	}
}
