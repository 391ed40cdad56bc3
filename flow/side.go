package flow

import (
	"reflect"

	"github.com/weirflow/weir/jobgraph"
)

// Tag names a side output and the type of its records.
type Tag[T any] struct{ name string }

// NewTag makes a tag. Side outputs of several operators may have one tag.
func NewTag[T any](name string) Tag[T] { return Tag[T]{name} }

// sideOutput is an output of an operator beside its main one.
type sideOutput struct {
	name string
	out  string // type of the records
	// join makes one func(Out) of several, or of none.
	join func(nexts []any) any
	// bind gives the user's [Out] what it emits to, and the member that counts it.
	bind func(m *member, next any)
}

// SideOutput declares a side output of a [Process] or [CoProcess] operator and returns
// what its processor emits to. [Side] reads it; what nobody reads is dropped.
func SideOutput[T any](s *Setup, tag Tag[T]) *Out[T] {
	o := &Out[T]{}
	side := &sideOutput{name: tag.name, out: typeText(reflect.TypeFor[T]()), join: join[T]}
	side.bind = func(m *member, next any) { o.m, o.to = m, next.(func(T)) }
	n := s.node
	if n.side(tag.name) != nil {
		n.fault("side output %q declared twice", tag.name)
	}
	n.sides = append(n.sides, side)
	n.logical.Sides = append(n.logical.Sides, jobgraph.SideOutput{Name: side.name, Out: side.out})
	return o
}

// Side is the stream of a side output of the operator that made the stream of.
func Side[B, T any](of Stream[B], tag Tag[T]) Stream[T] {
	g := of.graph()
	o := of.origins[0]
	switch side := o.node.side(tag.name); {
	case len(of.origins) > 1 || o.side != "" || o.wish != jobgraph.Forward:
		g.fault("side output %q is asked of a stream that is not what an operator returned", tag.name)
	case side == nil:
		o.node.fault("there is no side output %q", tag.name)
	case side.out != typeText(reflect.TypeFor[T]()):
		o.node.fault("side output %q has records of type %s, not %s", tag.name, side.out, typeText(reflect.TypeFor[T]()))
	}
	return Stream[T]{[]origin{{node: o.node, side: tag.name}}}
}

// side returns the side output of this name, or nil.
func (n *node) side(name string) *sideOutput {
	for _, s := range n.sides {
		if s.name == name {
			return s
		}
	}
	return nil
}
