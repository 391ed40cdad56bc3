package flow

import "github.com/weirflow/weir/jobgraph"

// Sink takes records out of a job. One value serves one subtask. It may implement
// the optional interfaces of this package: [Flusher] is called before each snapshot
// and at the end, [CheckpointListener] once what was flushed is safe to publish.
type Sink[T any] interface {
	// Write takes a record with its timestamp in milliseconds since the Unix epoch,
	// or [operator.NoTimestamp].
	Write(ts int64, v T) error
}

// SinkFunc is a [Sink] that is a function.
type SinkFunc[T any] func(ts int64, v T) error

// Write implements [Sink].
func (f SinkFunc[T]) Write(ts int64, v T) error { return f(ts, v) }

// Discard returns a sink that drops records.
func Discard[T any]() Sink[T] { return discard[T]{} }

type discard[T any] struct{}

func (discard[T]) Write(int64, T) error { return nil }

// To ends a stream in a sink.
func To[T any](in Stream[T], name string, sink Sink[T], options ...Option) {
	n := consumer(in, name, jobgraph.KindSink, options)
	n.require(!isNil(sink))
	n.user = sink
	if _, drops := sink.(discard[T]); drops {
		n.borrow = true
	}
	n.fuse = func(m *member, _ any) (any, error) {
		r, at, write := m.run, m.site, sink.Write
		if f, ok := sink.(SinkFunc[T]); ok {
			write = f // spares a call
		}
		m.keepState()
		return func(v T) {
			r.at = at
			if err := write(r.ts, v); err != nil {
				m.fail(err)
			}
		}, nil
	}
}

// keepState ties an operator that implements [StateKeeper] to snapshots.
func (m *member) keepState() {
	k, ok := m.node.user.(StateKeeper)
	if !ok {
		return
	}
	m.snapshot = k.SnapshotState
	m.restore = func() error {
		if elements, restored := m.run.env.Restored(m.id); restored {
			return k.RestoreState(elements)
		}
		return nil
	}
}
