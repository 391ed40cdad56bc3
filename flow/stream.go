package flow

import (
	"fmt"
	"iter"
	"reflect"

	"github.com/weirflow/weir/codec"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/operator"
)

// Stream is a stream of records of one type. It may be used by several operators:
// each then gets every record.
type Stream[T any] struct{ node *node }

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
	return Stream[B]{n}
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
	return Stream[B]{n}
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
	return Stream[T]{n}
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
	return Stream[B]{n}
}

// FlatMapFunc is [FlatMap] for functions that emit, which spares them an iterator
// for each record.
func FlatMapFunc[A, B any](in Stream[A], name string, fn func(v A, out *Out[B]) error, options ...Option) Stream[B] {
	n := transform[A, B](in, name, jobgraph.KindFlatMap, options)
	n.require(fn != nil)
	n.fuse = func(m *member, next any) (any, error) {
		r, o := m.run, newOut[B](m, next)
		return func(v A) {
			r.at = m.site
			if err := fn(v, o); err != nil {
				m.fail(err)
			}
		}, nil
	}
	return Stream[B]{n}
}

// KeyBy divides the stream by a key. The key of a record must depend on the record
// alone. Its name is for messages, and is as unique as an operator's.
func KeyBy[K comparable, T any](in Stream[T], name string, key func(T) K) KeyedStream[K, T] {
	g := in.node.graph
	g.claim(name, "key")
	k := KeyedStream[K, T]{stream: in, name: name, key: key}
	if key == nil {
		g.faults = append(g.faults, fmt.Errorf("key %q: function is nil", name))
	}
	var err error
	if k.keys, err = codec.ForKey[K](); err != nil {
		g.faults = append(g.faults, fmt.Errorf("key %q: %w", name, err))
	}
	return k
}

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

// consumer adds an operator with one input that has no partitioning wish.
func consumer[A any](in Stream[A], name string, kind jobgraph.Kind, options []Option) *node {
	n := in.node.graph.add(name, kind, in.node, options)
	n.logical.In = typeText(reflect.TypeFor[A]())
	input := jobgraph.Input{From: in.node.logical.Name}
	c, err := codec.For[A]()
	if err != nil {
		n.fault("input records: %s", err)
	} else {
		input.Codec = c.Schema()
	}
	n.logical.Inputs = []jobgraph.Input{input}
	n.write = func(m *member, out operator.Output) (any, error) { return writer(m, out, c), nil }
	n.head = func(m *member, first any) (headFunc, error) { return plainHead(m, first.(func(A)), c), nil }
	return n
}

// produces says that records of type B leave the operator.
func produces[B any](n *node) {
	n.logical.Out = typeText(reflect.TypeFor[B]())
	n.join = func(nexts []any) any {
		fns := make([]func(B), len(nexts))
		for i, f := range nexts {
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
}

// require reports a missing function.
func (n *node) require(given bool) {
	if !given {
		n.fault("its function is nil")
	}
}
