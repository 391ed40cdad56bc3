package generator

import (
	"context"
	"math"
	"time"

	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/operator"
)

const (
	// tick is how long a reader with a rate sleeps at least, so that records are made
	// in batches.
	tick = 10 * time.Millisecond
	// backlog bounds what a reader catches up on: it makes no more records at once
	// than this much time's.
	backlog = 100 * time.Millisecond
)

// reader makes the records of its splits.
type reader[T any] struct {
	options   Options
	newRecord func(n int64) T
	splits    []split
	limit     int64 // numbers below it are made

	group *group.Group
	wake  func()
	timer *group.Timer // nil until it was needed

	rate  float64   // records per second of this reader
	since time.Time // when counting for the rate began
	made  float64   // records made since then
}

// Open implements [flow.Opener].
func (r *reader[T]) Open(rt *flow.Runtime) error {
	if err := r.options.validate(); err != nil {
		return err
	}
	r.limit = r.options.Records
	if r.limit == 0 {
		r.limit = math.MaxInt64
	}
	r.group = group.New(context.Background(), "source/"+rt.Operator())
	r.wake = rt.Wake
	return nil
}

// Close implements [flow.Closer].
func (r *reader[T]) Close() error {
	if r.group == nil {
		return nil
	}
	return r.group.Stop(context.Background())
}

// AddSplits implements [flow.Reader].
func (r *reader[T]) AddSplits(encoded [][]byte) error {
	for _, b := range encoded {
		s, err := parseSplit(b)
		if err != nil {
			return err
		}
		r.splits = append(r.splits, s)
		r.rate += r.options.Rate / float64(s.of)
	}
	return nil
}

// Snapshot implements [flow.Reader].
func (r *reader[T]) Snapshot() ([][]byte, error) {
	encoded := make([][]byte, len(r.splits))
	for i := range r.splits {
		encoded[i] = r.splits[i].append(nil)
	}
	return encoded, nil
}

// Poll implements [flow.Reader].
func (r *reader[T]) Poll(emit func(ts int64, v T) bool) (operator.SourceStatus, error) {
	now := time.Now()
	ts := now.UnixMilli()
	due := int64(math.MaxInt64)
	if r.options.Rate > 0 {
		due = r.due(now)
	}
	for ; due > 0; due-- {
		s := r.first()
		if s == nil {
			return r.atEnd(), nil
		}
		n := s.next()
		s.done++
		r.made++
		if !emit(ts, r.newRecord(n)) {
			return operator.SourceMore, nil
		}
	}
	if r.first() == nil {
		return r.atEnd(), nil
	}
	r.sleep(now)
	return operator.SourceEmpty, nil
}

// first returns the split with the smallest number to emit, or nil at the end.
func (r *reader[T]) first() *split {
	var first *split
	for i := range r.splits {
		s := &r.splits[i]
		if n := s.next(); n < r.limit && n >= 0 && (first == nil || n < first.next()) {
			first = s
		}
	}
	return first
}

func (r *reader[T]) atEnd() operator.SourceStatus {
	if r.options.End {
		return operator.SourceEnd
	}
	return operator.SourceEmpty
}

// due returns how many records the rate allows now. What could not be made in time
// is forgotten beyond the backlog.
func (r *reader[T]) due(now time.Time) int64 {
	if r.since.IsZero() {
		r.since = now
	}
	owed := r.rate*now.Sub(r.since).Seconds() - r.made
	if most := max(r.rate*backlog.Seconds(), 1); owed > most {
		r.since, r.made = now, -most
		owed = most
	}
	return int64(owed)
}

// sleep arms the timer that wakes the task when records are due again.
func (r *reader[T]) sleep(now time.Time) {
	if r.rate == 0 {
		return
	}
	next := r.since.Add(time.Duration((r.made + 1) / r.rate * float64(time.Second)))
	d := max(next.Sub(now), tick)
	if r.timer == nil {
		r.timer = r.group.AfterFunc("timer", d, func(context.Context) { r.wake() })
		return
	}
	r.timer.Reset(d)
}
