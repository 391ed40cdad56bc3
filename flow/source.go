package flow

import (
	"context"
	"reflect"

	"github.com/weirflow/weir/codec"
	"github.com/weirflow/weir/internal/planted"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/operator"
)

// Source is where records come from: an enumerator that divides the source into
// splits, and readers that read them. One value serves one attempt.
type Source[T any] interface {
	// Enumerator returns the enumerator. It runs in the JobManager.
	Enumerator() operator.Enumerator
	// Reader returns the reader of one subtask.
	Reader() Reader[T]
}

// Reader reads splits. It may implement the optional interfaces of this package,
// except [StateKeeper], whose part its own methods play. All calls come from the
// task's goroutine.
type Reader[T any] interface {
	// AddSplits gives the reader splits to read: those that the enumerator assigned,
	// or, after a restore, those that Snapshot returned.
	AddSplits(splits [][]byte) error
	// Poll emits what there is at once and returns. It emits with a timestamp in
	// milliseconds since the Unix epoch, or [operator.NoTimestamp]; when emit answers
	// false it must return without emitting more. It never waits: with
	// nothing to emit it returns [operator.SourceEmpty], and calls [Runtime.Wake]
	// when that changes.
	Poll(emit func(ts int64, v T) bool) (operator.SourceStatus, error)
	// Snapshot returns the splits with the positions up to which they were emitted.
	Snapshot() ([][]byte, error)
}

// From adds a source.
func From[T any](g *Graph, name string, source Source[T], options ...Option) Stream[T] {
	n := g.add(name, jobgraph.KindSource, options)
	produces[T](n)
	if _, err := codec.For[T](); err != nil {
		n.fault("records: %s", err)
	}
	n.require(!isNil(source))
	if isNil(source) {
		return streamOf[T](n)
	}
	n.enumerator = source.Enumerator
	reader := source.Reader()
	n.require(!isNil(reader))
	n.user = reader
	n.join = func(nexts []any) any {
		if len(nexts) == 1 {
			return nexts[0]
		}
		return join[T](nexts)
	}
	n.fuse = func(m *member, next any) (any, error) { return sourcePoll(m, reader, next), nil }
	return streamOf[T](n)
}

// sourceStep is what the function that a reader emits into needs. One pointer to
// it is cheaper to keep over a call than its fields.
type sourceStep[T any] struct {
	r    *run
	at   int
	left int // records that may still be emitted in this poll
	to   func(T)
}

// sourceEnd is what may follow a source: an edge that a reader emits into without a step
// between.
type sourceEnd[T any] interface {
	step() func(T)
	source(s *sourceStep[T]) func(int64, T) bool
}

// emitted counts a record and says whether the reader may emit more.
func (s *sourceStep[T]) emitted() bool {
	r := s.r
	r.at = s.at
	s.left--
	return s.left > 0 && r.err == nil && !r.suspend.Load()
}

// source makes the function that a reader emits into, of what follows.
//
//go:noinline
func (s *sourceStep[T]) source() func(int64, T) bool {
	return func(ts int64, v T) bool {
		s.r.ts = ts
		s.to(v)
		return s.emitted()
	}
}

// sourcePoll makes the function that lets a reader emit into the chain.
func sourcePoll[T any](m *member, reader Reader[T], next any) pollFunc {
	r := m.run
	s := &sourceStep[T]{r: r, at: m.site}
	var emit func(int64, T) bool
	if end, ok := next.(sourceEnd[T]); ok {
		emit = end.source(s)
	} else {
		s.to = next.(func(T))
		emit = s.source()
	}
	m.restore = func() error {
		splits, restored := r.env.Restored(m.id)
		if !restored || planted.Is(planted.SplitsReassigned) {
			splits = append(splits, r.env.Splits(m.id)...)
		}
		return reader.AddSplits(splits)
	}
	m.snapshot = reader.Snapshot
	return func(limit int) (operator.SourceStatus, error) {
		r.at, s.left = s.at, limit
		defer func() { m.out += int64(limit - s.left) }()
		return reader.Poll(emit)
	}
}

// StaticSplits is an enumerator that assigns all splits before the tasks start and
// has nothing to do afterwards. assign returns the splits of each reader.
func StaticSplits(assign func(parallelism int) ([][][]byte, error)) operator.Enumerator {
	return &staticEnumerator{assign: assign}
}

type staticEnumerator struct {
	assign func(parallelism int) ([][][]byte, error)
}

func (e *staticEnumerator) Start(context.Context, operator.EnumeratorContext) error { return nil }
func (e *staticEnumerator) Restore([]byte) error                                    { return nil }
func (e *staticEnumerator) Assign(_ context.Context, parallelism int) ([][][]byte, error) {
	return e.assign(parallelism)
}
func (e *staticEnumerator) HandleEvent(context.Context, int, []byte) error { return nil }

// Snapshot returns no bytes: readers carry their splits.
func (e *staticEnumerator) Snapshot(context.Context, int64) ([]byte, error) { return []byte{}, nil }
func (e *staticEnumerator) NotifyComplete(int64)                            {}
func (e *staticEnumerator) Close() error                                    { return nil }

// isNil says whether an interface holds nothing, or a nil pointer.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Slice:
		return r.IsNil()
	}
	return false
}
