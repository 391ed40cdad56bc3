package flow

import (
	"fmt"
	"iter"
	"reflect"

	"github.com/weirflow/weir/codec"
	"github.com/weirflow/weir/jobgraph"
)

// Stream is a stream of records of one type. It may be used by several operators:
// each then gets every record.
type Stream[T any] struct {
	origins []origin // several after a [Union]
}

// origin is an output of an operator, and how its records are to be dealt to the
// subtasks of the next one.
type origin struct {
	node *node
	side string // which of the side outputs; empty: the main one
	wish jobgraph.Partitioning
	// partitioner names the user's function, and route is it: a func(T, int) int.
	partitioner string
	route       any
}

// streamOf is the main output of an operator.
func streamOf[T any](n *node) Stream[T] { return Stream[T]{[]origin{{node: n}}} }

func (s Stream[T]) graph() *Graph {
	if len(s.origins) == 0 {
		panic("a stream is made by the functions of package flow")
	}
	return s.origins[0].node.graph
}

// KeyedStream is a stream of which all records with one key are handled by one
// subtask. [KeyBy] makes it, [Process] uses it.
type KeyedStream[K comparable, T any] struct {
	stream Stream[T]
	name   string
	key    func(T) K
	keys   *codec.Codec[K] // nil if the type is not supported
}

// mapStep and filterStep are what the functions of a fused map and filter need. One
// pointer to it is cheaper to keep over a call than its fields.
type mapStep[A, B any] struct {
	r  *run
	at int
	fn func(A) B
	to func(B)
}

type filterStep[T any] struct {
	r    *run
	m    *member
	at   int
	keep func(T) bool
	to   func(T)
}

// Mapper maps records one to one. It may implement the optional interfaces of this
// package, for example [CheckpointListener].
type Mapper[A, B any] interface {
	Map(v A) (B, error)
}

// Map makes one record of each.
func Map[A, B any](in Stream[A], name string, fn func(A) B, options ...Option) Stream[B] {
	n := transform[A, B](in, name, jobgraph.KindMap, options)
	n.require(fn != nil)
	n.oneToOne = true
	n.fuse = func(m *member, next any) (any, error) {
		s := &mapStep[A, B]{m.run, m.site, fn, next.(func(B))}
		return func(v A) {
			s.r.at = s.at
			s.to(s.fn(v))
		}, nil
	}
	return streamOf[B](n)
}

// MapWith is [Map] with an object that may fail, and may be opened, closed and told
// of checkpoints.
func MapWith[A, B any](in Stream[A], name string, mapper Mapper[A, B], options ...Option) Stream[B] {
	n := transform[A, B](in, name, jobgraph.KindMap, options)
	n.require(mapper != nil)
	n.user = mapper
	n.oneToOne = true
	n.fuse = func(m *member, next any) (any, error) {
		r, at, to := m.run, m.site, next.(func(B))
		m.keepState()
		return func(v A) {
			r.at = at
			w, err := mapper.Map(v)
			if err != nil {
				m.fail(err)
				return
			}
			to(w)
		}, nil
	}
	return streamOf[B](n)
}

// Filter keeps the records for which keep is true.
func Filter[T any](in Stream[T], name string, keep func(T) bool, options ...Option) Stream[T] {
	n := transform[T, T](in, name, jobgraph.KindFilter, options)
	n.require(keep != nil)
	n.fuse = func(m *member, next any) (any, error) {
		s := &filterStep[T]{m.run, m, m.site, keep, next.(func(T))}
		return func(v T) {
			s.r.at = s.at
			if s.keep(v) {
				s.m.out++
				s.to(v)
			}
		}, nil
	}
	return streamOf[T](n)
}

// FlatMap makes any number of records of each.
func FlatMap[A, B any](in Stream[A], name string, fn func(A) iter.Seq[B], options ...Option) Stream[B] {
	n := transform[A, B](in, name, jobgraph.KindFlatMap, options)
	n.require(fn != nil)
	n.fuse = func(m *member, next any) (any, error) {
		r, o := m.run, newOut[B](m, next)
		return func(v A) {
			r.at = m.site
			for w := range fn(v) {
				o.Emit(w)
				if r.err != nil {
					return
				}
			}
		}, nil
	}
	return streamOf[B](n)
}

// FlatMapFunc is [FlatMap] for functions that emit, which spares them an iterator
// for each record.
func FlatMapFunc[A, B any](in Stream[A], name string, fn func(v A, out *Out[B]) error, options ...Option) Stream[B] {
	n := transform[A, B](in, name, jobgraph.KindFlatMap, options)
	n.require(fn != nil)
	n.user = fn
	n.fuse = func(m *member, next any) (any, error) {
		r, o := m.run, newOut[B](m, next)
		return func(v A) {
			r.at = m.site
			if err := fn(v, o); err != nil {
				m.fail(err)
			}
		}, nil
	}
	return streamOf[B](n)
}

// KeyBy divides the stream by a key. The key of a record must depend on the record
// alone. Its name is for messages, and is as unique as an operator's.
func KeyBy[K comparable, T any](in Stream[T], name string, key func(T) K) KeyedStream[K, T] {
	g := in.graph()
	g.claim(name, "key")
	for _, o := range in.origins {
		if o.wish != jobgraph.Forward {
			g.fault("key %q: its stream is dealt by key, not by %s", name, o.wish)
		}
	}
	k := KeyedStream[K, T]{stream: in, name: name, key: key}
	if key == nil {
		g.fault("key %q: function is nil", name)
	}
	var err error
	if k.keys, err = codec.ForKey[K](); err != nil {
		g.fault("key %q: %w", name, err)
	}
	return k
}

// part names the key's function in failures.
func (k KeyedStream[K, T]) part() string { return fmt.Sprintf("key %q", k.name) }

// Out takes the records that an operator emits.
type Out[T any] struct {
	m  *member
	to func(T)
}

func newOut[T any](m *member, next any) *Out[T] {
	return &Out[T]{m: m, to: next.(func(T))}
}

// Emit emits a record with the timestamp of the record being processed, if any.
func (o *Out[T]) Emit(v T) {
	r := o.m.run
	if r.err != nil {
		return
	}
	o.m.out++
	o.to(v)
	r.at = o.m.site
}

// EmitAt emits a record with a timestamp in milliseconds since the Unix epoch.
func (o *Out[T]) EmitAt(ts int64, v T) {
	r := o.m.run
	current := r.ts
	r.ts = ts
	o.Emit(v)
	r.ts = current
}

// transform adds an operator with one input and one output.
func transform[A, B any](in Stream[A], name string, kind jobgraph.Kind, options []Option) *node {
	n := consumer(in, name, kind, options)
	produces[B](n)
	return n
}

// consumer adds an operator with one port that is not keyed.
func consumer[A any](in Stream[A], name string, kind jobgraph.Kind, options []Option) *node {
	n := in.graph().add(name, kind, options)
	c := plainPort(n, in)
	n.head = func(m *member, first any, _ int) headFunc { return plainHead(m, first.(func(A)), c) }
	return n
}

// produces says that records of type B leave the operator.
func produces[B any](n *node) {
	n.logical.Out = typeText(reflect.TypeFor[B]())
	n.join = join[B]
}

// join makes one function of several, or of none.
func join[B any](nexts []any) any {
	fns := make([]func(B), len(nexts))
	for i, f := range nexts {
		if end, ok := f.(sourceEnd[B]); ok {
			f = end.step()
		}
		fns[i] = f.(func(B))
	}
	switch len(fns) {
	case 0:
		return func(B) {}
	case 1:
		return fns[0]
	}
	return func(v B) {
		for _, f := range fns {
			f(v)
		}
	}
}

// require reports a missing function.
func (n *node) require(given bool) {
	if !given {
		n.fault("its function is nil")
	}
}
