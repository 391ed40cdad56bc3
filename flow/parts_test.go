package flow_test

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/operator"
)

// numberSource emits 0 to limit-1, with the number as the timestamp.
type numberSource struct {
	limit, next int
	journal     *[]string
}

func numbers(limit int) *numberSource { return &numberSource{limit: limit} }

func (s *numberSource) Enumerator() operator.Enumerator {
	return flow.StaticSplits(func(parallelism int) ([][][]byte, error) {
		splits := make([][][]byte, parallelism)
		splits[0] = [][]byte{{0}}
		return splits, nil
	})
}
func (s *numberSource) Reader() flow.Reader[int] { return s }
func (s *numberSource) AddSplits(splits [][]byte) error {
	s.note("add " + strconv.Itoa(len(splits)))
	if len(splits) == 0 {
		s.next = s.limit
		return nil
	}
	n, k := binary.Uvarint(splits[0])
	if k <= 0 {
		return fmt.Errorf("bad split %x", splits[0])
	}
	s.next = int(n)
	return nil
}
func (s *numberSource) Poll(emit func(int64, int) bool) (operator.SourceStatus, error) {
	for s.next < s.limit {
		s.next++
		if !emit(int64(s.next-1), s.next-1) {
			return operator.SourceMore, nil
		}
	}
	return operator.SourceEnd, nil
}
func (s *numberSource) Snapshot() ([][]byte, error) {
	return [][]byte{binary.AppendUvarint(nil, uint64(s.next))}, nil
}
func (s *numberSource) Open(r *flow.Runtime) error {
	s.note(fmt.Sprintf("open source %d/%d of %s", r.Subtask(), r.Parallelism(), r.Job()))
	return nil
}
func (s *numberSource) Close() error { s.note("close source"); return nil }
func (s *numberSource) HandleEvent(e []byte) error {
	s.note("event " + string(e))
	return nil
}
func (s *numberSource) note(what string) {
	if s.journal != nil {
		*s.journal = append(*s.journal, what)
	}
}

// listener is a mapper that writes down what it is told.
type listener struct {
	journal *[]string
	fail    error
}

func (l *listener) note(what string) { *l.journal = append(*l.journal, what) }
func (l *listener) Map(v int) (int, error) {
	return v, l.fail
}
func (l *listener) Open(*flow.Runtime) error { l.note("open map"); return nil }
func (l *listener) Close() error             { l.note("close map"); return nil }
func (l *listener) NotifyComplete(id weir.CheckpointID) error {
	l.note(fmt.Sprintf("complete %d", id))
	return nil
}
func (l *listener) NotifyAborted(id weir.CheckpointID) error {
	l.note(fmt.Sprintf("aborted %d", id))
	return nil
}

// collect is a sink that keeps everything, with state of its own.
type collect[T any] struct {
	got     *[]T
	journal *[]string
}

func (c collect[T]) Write(_ int64, v T) error {
	*c.got = append(*c.got, v)
	return nil
}
func (c collect[T]) note(what string) {
	if c.journal != nil {
		*c.journal = append(*c.journal, what)
	}
}
func (c collect[T]) Open(*flow.Runtime) error { c.note("open sink"); return nil }
func (c collect[T]) Close() error             { c.note("close sink"); return nil }
func (c collect[T]) Flush() error             { c.note("flush"); return nil }
func (c collect[T]) SnapshotState() ([][]byte, error) {
	c.note("snapshot")
	return [][]byte{[]byte(strconv.Itoa(len(*c.got)))}, nil
}
func (c collect[T]) RestoreState(elements [][]byte) error {
	c.note(fmt.Sprintf("restore %s", elements))
	return nil
}
