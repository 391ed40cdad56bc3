package flow

import (
	"errors"
	"strings"
	"time"

	"github.com/weirflow/weir/codec"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/statebackend"
)

// Processor handles the records of a keyed stream, with state for each key. It may
// implement [TimerProcessor], [Finisher], [KeyFinisher] and the optional interfaces of this
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

// KeyFinisher is a [Processor] that has last records to emit for each key when all input
// has ended. FinishKey is called, before Finish, for each key that has a value in the
// state that was declared first, in no particular order. It must not change that state.
type KeyFinisher[K comparable, B any] interface {
	FinishKey(c *Context[K], out *Out[B]) error
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
	// eachKey calls fn for every key until it returns false.
	eachKey(fn func(key []byte) bool)
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
// setup declares the states with [NewValue], and side outputs with [SideOutput], and
// returns the processor that uses them.
func Process[K comparable, A, B any](in KeyedStream[K, A], name string, setup func(s *Setup) Processor[K, A, B], options ...Option) Stream[B] {
	n := in.stream.graph().add(name, jobgraph.KindProcess, options)
	produces[B](n)
	values := keyedPort(n, in)
	s := newSetup(n, in.keys)
	n.require(setup != nil)
	if setup == nil {
		return streamOf[B](n)
	}
	p := setup(s)
	n.require(!isNil(p))
	op := newKeyedOperator[K, B](s, in.keys, p)
	n.fuse = func(m *member, next any) (any, error) {
		if err := op.open(m, next); err != nil {
			return nil, err
		}
		r, c, out := m.run, op.context, op.out
		return func(v A) {
			r.at = m.site
			if err := p.Process(c, v, out); err != nil {
				m.fail(err)
			}
		}, nil
	}
	n.head = func(m *member, _ any, _ int) headFunc { return newKeyedHead(op, m, in, values, p) }
	return streamOf[B](n)
}

// newSetup is the setup of an operator whose keys these are.
func newSetup[K comparable](n *node, keys *codec.Codec[K]) *Setup {
	s := &Setup{node: n}
	if keys != nil {
		s.key = keys.Schema()
	}
	return s
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
