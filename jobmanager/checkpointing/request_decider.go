package checkpointing

import (
	"cmp"
	"slices"
	"time"

	"github.com/weirflow/weir"
)

// maxQueuedRequests is how many requests may wait (behaviour §1.3).
const maxQueuedRequests = 1000

// CheckpointRequest is a wish for a snapshot.
type CheckpointRequest struct {
	Request  RequestID // 0: nobody is to be answered
	Kind     weir.SnapshotKind
	Location string // of a savepoint
	Forced   bool   // started in spite of others that are pending
	Periodic bool
	At       time.Time // when it was made
	seq      uint64    // tells requests apart
}

// RefusedRequest is a request that was dropped.
type RefusedRequest struct {
	CheckpointRequest
	Reason weir.FailureReason
}

// Situation is what a decision depends on besides the queue.
type Situation struct {
	Now            time.Time
	LastCompletion time.Time // of any snapshot; zero: none yet
	Triggering     bool      // a trigger is under way
	Pending        int       // checkpoints
	Cleaning       int       // snapshots being deleted
}

// Decision is what the decider says.
type Decision struct {
	Start   *CheckpointRequest // to trigger now; it left the queue
	Refused []RefusedRequest   // they left the queue too
	// Reschedule moves the periodic timer to this time from now, if not 0.
	Reschedule time.Duration
}

// CheckpointRequestDecider is the queue of requests and the choice among them
// (behaviour §1). Only its coordinator calls it.
type CheckpointRequestDecider struct {
	maxConcurrent int
	minPause      time.Duration
	limit         int
	queue         []CheckpointRequest // most urgent first
	seq           uint64
}

// NewCheckpointRequestDecider returns an empty queue.
func NewCheckpointRequestDecider(o Options) *CheckpointRequestDecider {
	return &CheckpointRequestDecider{
		maxConcurrent: o.MaxConcurrent, minPause: o.minPause(), limit: maxQueuedRequests,
	}
}

// Len is the number of requests that wait.
func (d *CheckpointRequestDecider) Len() int { return len(d.queue) }

// Submit adds a request and decides.
func (d *CheckpointRequestDecider) Submit(r CheckpointRequest, s Situation) Decision {
	d.seq++
	r.seq = d.seq
	if n := len(d.queue); n >= d.limit && !d.queue[n-1].Periodic {
		return Decision{Refused: []RefusedRequest{{r, weir.TooManyCheckpointRequests}}}
	}
	at, _ := slices.BinarySearchFunc(d.queue, r, compareRequests)
	d.queue = slices.Insert(d.queue, at, r)
	var refused []RefusedRequest
	if last := len(d.queue) - 1; last >= d.limit {
		refused = append(refused, RefusedRequest{d.queue[last], weir.TooManyCheckpointRequests})
		d.queue = d.queue[:last]
	}
	decision := d.Next(s)
	decision.Refused = append(refused, decision.Refused...)
	return decision
}

// Next decides again. It is asked whenever a trigger, a checkpoint or a cleanup ends.
func (d *CheckpointRequestDecider) Next(s Situation) Decision {
	if s.Triggering || len(d.queue) == 0 || s.Cleaning > d.maxConcurrent {
		return Decision{}
	}
	first := d.queue[0]
	if s.Pending >= d.maxConcurrent {
		if !first.Forced {
			return Decision{}
		}
		return d.pop()
	}
	if first.Periodic && !first.Forced && !s.LastCompletion.IsZero() {
		if delay := s.LastCompletion.Sub(s.Now) + d.minPause; delay > 0 {
			d.queue = slices.Delete(d.queue, 0, 1)
			return Decision{
				Refused:    []RefusedRequest{{first, weir.MinimumTimeBetweenCheckpoints}},
				Reschedule: delay,
			}
		}
	}
	return d.pop()
}

// AbortAll empties the queue and returns what was in it, most urgent first.
func (d *CheckpointRequestDecider) AbortAll(reason weir.FailureReason) []RefusedRequest {
	var refused []RefusedRequest
	for _, r := range d.queue {
		refused = append(refused, RefusedRequest{r, reason})
	}
	d.queue = nil
	return refused
}

func (d *CheckpointRequestDecider) pop() Decision {
	first := d.queue[0]
	d.queue = slices.Delete(d.queue, 0, 1)
	return Decision{Start: &first}
}

// compareRequests orders requests, most urgent first. No two are equal.
func compareRequests(a, b CheckpointRequest) int {
	return cmp.Or(
		trueFirst(a.Kind.IsSavepoint(), b.Kind.IsSavepoint()),
		trueFirst(a.Forced, b.Forced),
		trueFirst(!a.Periodic, !b.Periodic),
		a.At.Compare(b.At),
		cmp.Compare(a.seq, b.seq),
	)
}

func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}
