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

// Mapper maps records one to one. It may implement the optional interfaces of this
// package, for example [CheckpointListener].
type Mapper[A, B any] interface {
	Map(v A) (B, error)
}

// Map makes one record of each.
func Map[A, B any](in Stream[A], name string, fn func(A) B, options ...Option) Stream[B] {
	n := transform[A, B](in, name, jobgraph.KindMap, options)
	n.require(fn != nil)
	n.fuse = func(m *member, next any) (any, error) {
		r, to := m.run, next.(func(int64, B))
		return func(ts int64, v A) {
			m.in++
			r.at = m.site
			w := fn(v)
			m.out++
			to(ts, w)
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
	n.fuse = func(m *member, next any) (any, error) {
		r, to := m.run, next.(func(int64, B))
		m.keepState()
		return func(ts int64, v A) {
			m.in++
			r.at = m.site
			w, err := mapper.Map(v)
			if err != nil {
				m.fail(err)
				return
			}
			m.out++
			to(ts, w)
		}, nil
	}
	return Stream[B]{n}
}

// Filter keeps the records for which keep is true.
func Filter[T any](in Stream[T], name string, keep func(T) bool, options ...Option) Stream[T] {
	n := transform[T, T](in, name, jobgraph.KindFilter, options)
	n.require(keep != nil)
	n.fuse = func(m *member, next any) (any, error) {
		r, to := m.run, next.(func(int64, T))
		return func(ts int64, v T) {
			m.in++
			r.at = m.site
			if keep(v) {
				m.out++
				to(ts, v)
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
		return func(ts int64, v A) {
			m.in++
			r.at = m.site
			o.ts = ts
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
		return func(ts int64, v A) {
			m.in++
			r.at = m.site
			o.ts = ts
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
	to func(int64, T)
	ts int64
}

func newOut[T any](m *member, next any) *Out[T] {
	return &Out[T]{m: m, to: next.(func(int64, T)), ts: operator.NoTimestamp}
}

// Emit emits a record with the timestamp of the record being processed, if any.
func (o *Out[T]) Emit(v T) { o.EmitAt(o.ts, v) }

// EmitAt emits a record with a timestamp in milliseconds since the Unix epoch.
func (o *Out[T]) EmitAt(ts int64, v T) {
	r := o.m.run
	if r.err != nil {
		return
	}
	o.m.out++
	o.to(ts, v)
	r.at = o.m.site
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
	n.head = func(m *member, first any) (headFunc, error) { return plainHead(m, first.(func(int64, A)), c), nil }
	return n
}

// produces says that records of type B leave the operator.
func produces[B any](n *node) {
	n.logical.Out = typeText(reflect.TypeFor[B]())
	n.join = func(nexts []any) any {
		fns := make([]func(int64, B), len(nexts))
		for i, f := range nexts {
			fns[i] = f.(func(int64, B))
		}
		switch len(fns) {
		case 0:
			return func(int64, B) {}
		case 1:
			return fns[0]
		}
		return func(ts int64, v B) {
			for _, f := range fns {
				f(ts, v)
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
