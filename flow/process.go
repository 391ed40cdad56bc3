package flow

import (
	"bytes"
	"errors"
	"strings"
	"time"

	"github.com/weirflow/weir/codec"
	"github.com/weirflow/weir/internal/assert"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/statebackend"
)

// Processor handles the records of a keyed stream, with state for each key. It may
// implement [TimerProcessor], [Finisher] and the optional interfaces of this
// package.
type Processor[K comparable, A, B any] interface {
	Process(c *Context[K], v A, out *Out[B]) error
}

// ProcessFunc is a [Processor] that is a function.
type ProcessFunc[K comparable, A, B any] func(c *Context[K], v A, out *Out[B]) error

// Process implements [Processor].
func (f ProcessFunc[K, A, B]) Process(c *Context[K], v A, out *Out[B]) error { return f(c, v, out) }

// TimerProcessor is a [Processor] that sets timers.
type TimerProcessor[K comparable, B any] interface {
	// OnTimer is called when the time of a timer has come, with the timer's key and
	// that key's state. The timer is gone by then.
	OnTimer(c *Context[K], at time.Time, out *Out[B]) error
}

// Finisher is a [Processor] that has last records to emit when all input has ended.
// There is no key then.
type Finisher[B any] interface {
	Finish(out *Out[B]) error
}

// Setup declares the state of one operator, while the graph is built.
type Setup struct {
	node   *node
	key    string // schema
	states []binding
}

// binding is a state that is tied to a table when the chain is opened.
type binding interface {
	bind(m *member, b statebackend.Backend, at *cursor) error
	prefetch(hashes []uint64, first int)
}

// cursor says which entry state calls are about: that of the current key.
type cursor struct {
	hash uint64
	key  []byte // encoded
	// index is the current record's place in the batch, which has its hints;
	// withoutHint outside of a batch, withoutKey if there is no current key.
	index int
}

// ref names the entry.
func (c *cursor) ref() statebackend.Ref { return statebackend.Ref{Hash: c.hash, Key: c.key} }

const (
	withoutHint = -1
	withoutKey  = -2
)

// reservedPrefix begins the names of states that are not the user's; timersState is
// the one under which timers stand in the graph and in the backend.
const (
	reservedPrefix = "weir/"
	timersState    = reservedPrefix + "processing-timers"
)

// Context is what a [Processor] sees of the record or timer it is called for.
type Context[K comparable] struct {
	*Runtime
	cursor
	m      *member
	value  K // of the key
	timers operator.TimerService
}

// Key is the current key.
func (c *Context[K]) Key() K { return c.value }

// Timestamp is the record's in milliseconds since the Unix epoch, or
// [operator.NoTimestamp].
func (c *Context[K]) Timestamp() int64 { return c.m.run.ts }

// Now is the processing time, by the clock of the timers.
func (c *Context[K]) Now() time.Time {
	if c.timers == nil {
		return c.Runtime.Now()
	}
	return time.UnixMilli(c.timers.Now())
}

// SetTimer has OnTimer called for the current key at a time, to the millisecond. A
// timer that is set twice for one time is one timer.
func (c *Context[K]) SetTimer(at time.Time) {
	if c.hasTimers() {
		c.timers.Register(c.hash, c.cursor.key, at.UnixMilli())
	}
}

// DeleteTimer removes the current key's timer of that time, if there is one.
func (c *Context[K]) DeleteTimer(at time.Time) {
	if c.hasTimers() {
		c.timers.Delete(c.hash, c.cursor.key, at.UnixMilli())
	}
}

func (c *Context[K]) hasTimers() bool {
	switch {
	case c.timers == nil:
		c.m.fail(errors.New("a timer is set, but the operator has no method OnTimer"))
	case c.index == withoutKey:
		c.m.fail(errors.New("a timer is set where there is no key"))
	default:
		return true
	}
	return false
}

// Process handles each record of a keyed stream together with the state of its key.
// setup declares the states with [NewValue] and returns the processor that uses them.
func Process[K comparable, A, B any](in KeyedStream[K, A], name string, setup func(s *Setup) Processor[K, A, B], options ...Option) Stream[B] {
	n := transform[A, B](in.stream, name, jobgraph.KindProcess, options)
	input := &n.logical.Inputs[0]
	input.Partitioning = jobgraph.Hash
	s := &Setup{node: n}
	if in.keys != nil {
		s.key = in.keys.Schema()
		input.Key = s.key
	}
	n.require(setup != nil)
	if setup == nil {
		return Stream[B]{n}
	}
	p := setup(s)
	n.require(!isNil(p))
	n.user = p
	timed, _ := any(p).(TimerProcessor[K, B])
	if timed != nil {
		n.logical.States = append(n.logical.States, jobgraph.State{Name: timersState, Kind: "timers", Key: s.key})
	}
	values, err := codec.For[A]()
	if err != nil {
		return Stream[B]{n} // reported as a fault of the input
	}
	op := &keyedOperator[K, A, B]{in: in, values: values, setup: s, processor: p, timed: timed}
	n.fuse = op.fuse
	n.write = func(m *member, out operator.Output) (any, error) { return keyWriter(m, out, values, in), nil }
	n.head = func(m *member, first any) (headFunc, error) { return op.head(m, first.(func(A))), nil }
	return Stream[B]{n}
}

// keyedOperator is a [Process] operator while it runs.
type keyedOperator[K comparable, A, B any] struct {
	in        KeyedStream[K, A]
	values    *codec.Codec[A]
	setup     *Setup
	processor Processor[K, A, B]
	timed     TimerProcessor[K, B]
	context   *Context[K]
	out       *Out[B]
	keySite   int
	keyBuf    []byte
}

func (o *keyedOperator[K, A, B]) fuse(m *member, next any) (any, error) {
	r := m.run
	o.out = newOut[B](m, next)
	o.context = &Context[K]{Runtime: m.runtime, m: m}
	o.context.index = withoutKey
	o.keySite = r.addSite(site{operator: m.node.logical.Name, key: o.in.name})
	if err := o.bind(m); err != nil {
		return nil, err
	}
	m.keepState()
	if f, ok := any(o.processor).(Finisher[B]); ok {
		m.finish = func() error {
			r.ts = operator.NoTimestamp
			return f.Finish(o.out)
		}
	}
	c := o.context
	return func(v A) {
		r.at = m.site
		if err := o.processor.Process(c, v, o.out); err != nil {
			m.fail(err)
		}
	}, nil
}

// bind ties states and timers to the task's backend.
func (o *keyedOperator[K, A, B]) bind(m *member) error {
	if len(o.setup.states) > 0 {
		backend, err := m.run.env.Backend(m.id)
		if err != nil {
			return err
		}
		for _, s := range o.setup.states {
			if err := s.bind(m, backend, &o.context.cursor); err != nil {
				return err
			}
		}
	}
	if o.timed == nil {
		return nil
	}
	var err error
	o.context.timers, err = m.run.env.Timers(m.id, func(hash uint64, key []byte, at int64) error { return o.fire(m, hash, key, at) })
	return err
}

// head decodes a batch for the operator. It first has the states of all keys of the
// batch loaded together; then it goes record by record.
func (o *keyedOperator[K, A, B]) head(m *member, first func(A)) headFunc {
	r, c, place := m.run, o.context, new(A)
	var last *operator.Batch // the batch and the record up to which states were asked for
	lastNext := 0
	return func(b *operator.Batch) {
		start := b.Next
		if start == 0 || b != last || start != lastNext {
			for _, s := range o.setup.states {
				s.prefetch(b.Hash[start:b.N], start)
			}
		}
		for i := start; i < b.N; {
			if err := o.values.Decode(b.Payload[i], place); err != nil {
				r.failSystem(m.site, err)
				break
			}
			r.at = o.keySite
			c.value = o.in.key(*place)
			key := o.in.keys.Find(b.Payload[i], &c.value)
			if key == nil {
				if key = o.encode(&c.value); key == nil {
					break
				}
			}
			if assert.Enabled && codec.Hash(key) != b.Hash[i] {
				r.fail(o.keySite, errors.New("the function gave another key than at the producer"))
				break
			}
			c.hash, c.cursor.key = b.Hash[i], key
			c.index = i
			r.ts = b.Timestamp[i]
			first(*place)
			i++
			b.Next = i
			if r.err != nil || r.suspend.Load() {
				break
			}
		}
		c.index = withoutKey
		m.in += int64(b.Next - start)
		last, lastNext = b, b.Next
	}
}

// encode encodes a key that is not a part of its record; nil after a failure.
func (o *keyedOperator[K, A, B]) encode(key *K) []byte {
	var err error
	if o.keyBuf, err = o.in.keys.Append(o.keyBuf[:0], key); err == nil {
		err = checkKey(o.keyBuf)
	}
	if err != nil {
		o.context.m.run.fail(o.keySite, err)
		return nil
	}
	return o.keyBuf
}

// fire runs a timer that is due. The service's bytes are the service's, so the key
// is decoded from a copy if it refers to them.
func (o *keyedOperator[K, A, B]) fire(m *member, hash uint64, key []byte, at int64) (err error) {
	r, c := m.run, o.context
	if r.err != nil {
		return r.err
	}
	defer r.leave(&err)
	o.keyBuf = append(o.keyBuf[:0], key...)
	decoded := o.keyBuf
	if o.in.keys.HasPointers() {
		decoded = bytes.Clone(key)
	}
	if err := o.in.keys.Decode(decoded, &c.value); err != nil {
		r.failSystem(m.site, err)
		return r.err
	}
	c.hash, c.cursor.key, c.index = hash, o.keyBuf, withoutHint
	r.ts, r.at = operator.NoTimestamp, m.site
	if err := o.timed.OnTimer(c, time.UnixMilli(at), o.out); err != nil {
		m.fail(err)
	}
	c.index = withoutKey
	return r.err
}

// declare checks a state's name and adds it to the graph.
func (s *Setup) declare(state jobgraph.State, b binding) {
	if strings.HasPrefix(state.Name, reservedPrefix) {
		s.node.fault("state %q: names that begin with %s are reserved", state.Name, reservedPrefix)
	}
	state.Key = s.key
	s.node.logical.States = append(s.node.logical.States, state)
	s.states = append(s.states, b)
}
