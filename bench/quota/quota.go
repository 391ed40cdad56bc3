package quota

import "sync/atomic"

// Report is how many records a counter counts before it says so.
const Report = 256

// Quota is how far a job may go. Make it with [New].
type Quota struct {
	counters int
	allowed  atomic.Int64 // records in all
	wake     atomic.Pointer[func()]
	counted  atomic.Int64 // records in all, up to what a counter has not reported
	goal     atomic.Int64 // of counted
	reached  chan struct{}
}

// New is a quota of no records for a job with so many counters.
func New(counters int) *Quota { return &Quota{counters: counters, reached: make(chan struct{}, 1)} }

// SetWake says how the source is woken.
func (q *Quota) SetWake(wake func()) { q.wake.Store(&wake) }

// Opened says whether the source has set its wake.
func (q *Quota) Opened() bool { return q.wake.Load() != nil }

// Allowed is how many records the source may have emitted in all.
func (q *Quota) Allowed() int64 { return q.allowed.Load() }

// Counted says that a counter has counted [Report] more records.
func (q *Quota) Counted() {
	if n := q.counted.Add(Report); n >= q.goal.Load() && n-Report < q.goal.Load() {
		q.reached <- struct{}{}
	}
}

// Run lets that many more records through. What the counters have not reported at the end,
// few records, is part of the next call's.
func (q *Quota) Run(records int) {
	allowed := q.allowed.Load() + int64(records)
	q.goal.Store(allowed - int64(q.counters*Report))
	q.allowed.Store(allowed)
	(*q.wake.Load())()
	<-q.reached
}
