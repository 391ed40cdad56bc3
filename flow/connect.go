package flow

import (
	"github.com/weirflow/weir/jobgraph"
)

// Connected is two streams that one operator reads. [Connect] makes it.
type Connected[A, B any] struct {
	first  Stream[A]
	second Stream[B]
}

// KeyedConnected is two streams with keys of one type. All records with one key, of
// either stream, are handled by one subtask, and share the state of the key.
// [ConnectKeyed] makes it.
type KeyedConnected[K comparable, A, B any] struct {
	first  KeyedStream[K, A]
	second KeyedStream[K, B]
}

// Connect has two streams read by one operator: [CoMap] or [CoFlatMap].
func Connect[A, B any](first Stream[A], second Stream[B]) Connected[A, B] {
	return Connected[A, B]{first, second}
}

// ConnectKeyed has two keyed streams read by one operator: [CoProcess].
func ConnectKeyed[K comparable, A, B any](first KeyedStream[K, A], second KeyedStream[K, B]) KeyedConnected[K, A, B] {
	return KeyedConnected[K, A, B]{first, second}
}

// pair is what the operator of two streams is fused to: a function for each.
type pair[A, B any] struct {
	first  func(A)
	second func(B)
}

// CoMap makes one record of each record of two streams, in no order.
func CoMap[A, B, C any](in Connected[A, B], name string, first func(A) C, second func(B) C, options ...Option) Stream[C] {
	n := connected[A, B, C](in, name, jobgraph.KindCoMap, options)
	n.require(first != nil && second != nil)
	n.oneToOne = true
	n.fuse = func(m *member, next any) (any, error) {
		to := next.(func(C))
		a := &mapStep[A, C]{m.run, m.site, first, to}
		b := &mapStep[B, C]{m.run, m.site, second, to}
		return pair[A, B]{a.step, b.step}, nil
	}
	return streamOf[C](n)
}

func (s *mapStep[A, B]) step(v A) {
	s.r.at = s.at
	s.to(s.fn(v))
}

// CoFlatMap makes any number of records of each record of two streams, in no order.
func CoFlatMap[A, B, C any](in Connected[A, B], name string, first func(v A, out *Out[C]) error, second func(v B, out *Out[C]) error, options ...Option) Stream[C] {
	n := connected[A, B, C](in, name, jobgraph.KindCoFlatMap, options)
	n.require(first != nil && second != nil)
	n.fuse = func(m *member, next any) (any, error) {
		o := newOut[C](m, next)
		return pair[A, B]{emitting(m, first, o), emitting(m, second, o)}, nil
	}
	return streamOf[C](n)
}

// emitting is a user's function that emits, as it is fused.
func emitting[A, B any](m *member, fn func(v A, out *Out[B]) error, out *Out[B]) func(A) {
	r := m.run
	return func(v A) {
		r.at = m.site
		if err := fn(v, out); err != nil {
			m.fail(err)
		}
	}
}

// connected adds an operator of two streams without keys.
func connected[A, B, C any](in Connected[A, B], name string, kind jobgraph.Kind, options []Option) *node {
	n := in.first.graph().add(name, kind, options)
	produces[C](n)
	a, b := plainPort(n, in.first), plainPort(n, in.second)
	n.head = func(m *member, first any, port int) headFunc {
		fns := first.(pair[A, B])
		if port == 0 {
			return plainHead(m, fns.first, a)
		}
		return plainHead(m, fns.second, b)
	}
	return n
}

// CoProcessor handles the records of two keyed streams, with state for each key that
// both share. It may implement [TimerProcessor], [Finisher], [InputFinisher] and the
// optional interfaces of this package.
type CoProcessor[K comparable, A, B, C any] interface {
	ProcessFirst(c *Context[K], v A, out *Out[C]) error
	ProcessSecond(c *Context[K], v B, out *Out[C]) error
}

// InputFinisher is a [CoProcessor] that has records to emit when one of its streams
// has ended: 0 is the first, 1 the second. There is no key then. After a restart it is
// called again.
type InputFinisher[C any] interface {
	FinishInput(input int, out *Out[C]) error
}

// CoProcess handles each record of two keyed streams together with the state of its
// key. setup is as for [Process].
func CoProcess[K comparable, A, B, C any](in KeyedConnected[K, A, B], name string, setup func(s *Setup) CoProcessor[K, A, B, C], options ...Option) Stream[C] {
	n := in.first.stream.graph().add(name, jobgraph.KindCoProcess, options)
	produces[C](n)
	a, b := keyedPort(n, in.first), keyedPort(n, in.second)
	n.require(setup != nil)
	if setup == nil {
		return streamOf[C](n)
	}
	s := newSetup(n, in.first.keys)
	p := setup(s)
	n.require(!isNil(p))
	op := newKeyedOperator[K, C](s, in.first.keys, p)
	n.fuse = func(m *member, next any) (any, error) {
		if err := op.open(m, next); err != nil {
			return nil, err
		}
		return pair[A, B]{processing(m, p.ProcessFirst, op), processing(m, p.ProcessSecond, op)}, nil
	}
	n.head = func(m *member, _ any, port int) headFunc {
		if port == 0 {
			return newKeyedHead(op, m, in.first, a, ProcessFunc[K, A, C](p.ProcessFirst))
		}
		return newKeyedHead(op, m, in.second, b, ProcessFunc[K, B, C](p.ProcessSecond))
	}
	return streamOf[C](n)
}

// processing is a method of a user's processor, as it is fused.
func processing[K comparable, A, B any](m *member, fn func(*Context[K], A, *Out[B]) error, op *keyedOperator[K, B]) func(A) {
	r, c, out := m.run, op.context, op.out
	return func(v A) {
		r.at = m.site
		if err := fn(c, v, out); err != nil {
			m.fail(err)
		}
	}
}
