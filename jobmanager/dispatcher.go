package jobmanager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/jobmanager/inbox"
	"github.com/weirflow/weir/jobmanager/jobmaster"
	"github.com/weirflow/weir/jobmanager/resource"
	"github.com/weirflow/weir/rpc"
)

// entry is one job that is known.
type entry struct {
	job    ha.Job
	master *jobmaster.JobMaster // nil once it has ended
	final  *jobmaster.Report    // of a job that ended in this term
}

func (e *entry) live() bool { return e.master != nil }

// peer is one session of a TaskManager.
type peer struct {
	session rpc.Session
	who     rpc.Registration
}

// dispatcher is the loop that owns the set of jobs and the table of TaskManagers.
type dispatcher struct {
	term  *term
	log   *zap.Logger
	inbox *inbox.Inbox[letter]
	pools *jobmaster.Pools

	jobs    map[weir.JobID]*entry
	table   *resource.SlotTable
	monitor *resource.HeartbeatMonitor
	peers   map[rpc.Session]*peer // registered ones
	byID    map[weir.TaskManagerID]*peer
	random  *rand.Rand // for jitter
}

var _ jobmaster.Slots = (*dispatcher)(nil)

func newDispatcher(t *term) *dispatcher {
	return &dispatcher{
		term: t, log: t.log, inbox: inbox.New[letter](), pools: jobmaster.NewPools(t.group),
		jobs:    make(map[weir.JobID]*entry),
		table:   resource.NewSlotTable(),
		monitor: resource.NewHeartbeatMonitor(t.cfg.HeartbeatTimeout),
		peers:   make(map[rpc.Session]*peer),
		byID:    make(map[weir.TaskManagerID]*peer),
		random:  rand.New(rand.NewPCG(uint64(t.leadership.Epoch()), uint64(len(t.cfg.CandidateID)))),
	}
}

// Request is called by jobs' loops.
func (d *dispatcher) Request(job weir.JobID, codeID string, n uint64, wants []weir.TaskManagerID) {
	e := resource.Request{Job: job, N: n, CodeID: codeID, Wants: make([]resource.Want, len(wants))}
	for i, w := range wants {
		e.Wants[i].Prefer = w
	}
	d.inbox.Post(slotEvent{e})
}

// Return is called by jobs' loops.
func (d *dispatcher) Return(job weir.JobID, slots []resource.Slot) {
	d.inbox.Post(slotEvent{resource.Return{Job: job, Slots: slots}})
}

// Release is called by jobs' loops.
func (d *dispatcher) Release(job weir.JobID) { d.inbox.Post(slotEvent{resource.Release{Job: job}}) }

// ended is called by jobs' loops.
func (d *dispatcher) ended(job weir.JobID, final jobmaster.Report) {
	d.inbox.Post(jobEnded{job, final})
}

// run is the goroutine dispatcher.
func (d *dispatcher) run(ctx context.Context) error {
	d.armBeat()
	for {
		for _, letter := range d.inbox.Take() {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			d.handle(letter)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-d.inbox.Wake():
		}
	}
}

// close ends the sessions and waits for the jobs' loops; run has ended.
func (d *dispatcher) close(ctx context.Context) {
	for _, letter := range d.inbox.Close() {
		if h, ok := letter.(heard); ok {
			h.session.Close(errTermOver())
		}
	}
	for session := range d.peers {
		session.Close(errTermOver())
	}
	for _, e := range d.jobs {
		if e.live() {
			e.master.Suspend(errTermOver())
		}
	}
	for _, e := range d.jobs {
		if !e.live() {
			continue
		}
		if err := e.master.Stop(ctx); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, rpc.ErrNotLeader) {
			d.log.Warn("job's loop ended badly", zap.Stringer("job", e.job.Record.Job), zap.Error(err))
		}
	}
}

func (d *dispatcher) handle(letter letter) {
	switch x := letter.(type) {
	case heard:
		d.heard(x.session, x.message)
	case hungUp:
		d.hungUp(x)
	case adopt:
		d.adopt(x)
	case jobEnded:
		d.jobEnded(x)
	case slotEvent:
		d.slots(x.event)
	case beat:
		d.beat()
	case ask:
		x.fn(d)
	}
}

// adopt takes a recorded job. It is idempotent.
func (d *dispatcher) adopt(x adopt) {
	id := x.job.Record.Job
	if d.jobs[id] == nil {
		e := &entry{job: x.job}
		d.jobs[id] = e
		if !x.job.Status.Terminal {
			e.master = jobmaster.New(d.term.group.Context(), d.term.deps(d.pools), x.job.Record, x.job.Status)
			if err := e.master.Start(); err != nil {
				d.log.Warn("job not started", zap.Stringer("job", id), zap.Error(err))
			}
		}
	}
	if x.done != nil {
		close(x.done)
	}
}

func (d *dispatcher) jobEnded(x jobEnded) {
	e := d.jobs[x.job]
	if e == nil || !e.live() {
		return
	}
	e.master, e.final = nil, &x.final
	d.retire()
}

// retire forgets the oldest of the jobs that have ended, if there are too many. Their
// checkpoints stay.
func (d *dispatcher) retire() {
	var over []*entry
	for _, e := range d.jobs {
		if !e.live() {
			over = append(over, e)
		}
	}
	slices.SortFunc(over, func(a, b *entry) int {
		return cmp.Or(a.job.Record.Submitted.Compare(b.job.Record.Submitted), cmp.Compare(a.job.Record.Job.String(), b.job.Record.Job.String()))
	})
	defer boundStatistics(over)
	for len(over) > d.term.cfg.RetainedJobs {
		job := over[0].job.Record
		over = over[1:]
		delete(d.jobs, job.Job)
		d.pools.Delete(func(ctx context.Context) {
			if err := d.term.jobs.Remove(ctx, job.Job); err != nil {
				d.log.Warn("ended job not removed", zap.Stringer("job", job.Job), zap.Error(err))
				return
			}
			if err := d.term.cfg.Blobs.Delete(ctx, job.Body); err != nil {
				d.log.Warn("body of an ended job not deleted", zap.Stringer("job", job.Job), zap.Error(err))
			}
		})
	}
}

// maxEndedSubtasks bounds the subtasks' statistics of all jobs that have ended: about 30 MB.
const maxEndedSubtasks = 200_000

// boundStatistics drops those of older jobs; what they sum up to stays.
func boundStatistics(ended []*entry) {
	left := maxEndedSubtasks
	for _, e := range slices.Backward(ended) {
		if e.final == nil {
			continue
		}
		final, n := *e.final, 0 // others may be reading the old one
		final.Checkpoints, n = final.Checkpoints.Bounded(left)
		e.final = &final
		left -= n
	}
}

// slots steps the table and tells jobs what it says.
func (d *dispatcher) slots(ev resource.Event) {
	for _, act := range d.table.Step(ev) {
		switch a := act.(type) {
		case resource.Granted:
			d.grant(a)
		case resource.Short:
			if e := d.jobs[a.Job]; e != nil && e.live() {
				e.master.Short(a.N, a.Text)
			}
		case resource.Lost:
			d.lost(a)
		case resource.Note:
			d.log.Debug("ignored", zap.String("what", a.Text))
		}
	}
}

func (d *dispatcher) grant(a resource.Granted) {
	e := d.jobs[a.Job]
	if e == nil || !e.live() {
		d.slots(resource.Release{Job: a.Job})
		return
	}
	grants := make([]jobmaster.Grant, len(a.Slots))
	for i, s := range a.Slots {
		p := d.byID[s.TaskManager]
		grants[i] = jobmaster.Grant{Slot: s, DataAddress: p.who.DataAddress, Host: p.who.Host, Session: p.session}
	}
	e.master.Granted(a.N, grants)
}

// lost tells all jobs that a TaskManager is gone.
func (d *dispatcher) lost(a resource.Lost) {
	d.log.Warn("TaskManager lost", zap.Stringer("taskmanager", a.ID), zap.String("reason", a.Reason))
	for _, e := range d.jobs {
		if e.live() {
			e.master.Lost(a.ID, a.Incarnation, a.Reason)
		}
	}
}

// armBeat asks for the next look at heartbeats. The jitter keeps timers apart.
func (d *dispatcher) armBeat() {
	interval := d.term.cfg.HeartbeatInterval
	jitter := time.Duration(d.random.Int64N(int64(interval)/10 + 1))
	d.term.group.AfterFunc("dispatcher/beat", interval+jitter, func(context.Context) { d.inbox.Post(beat{}) })
}

func (d *dispatcher) beat() {
	defer d.armBeat()
	for _, id := range d.monitor.Silent(time.Now()) {
		p := d.byID[id]
		if p == nil {
			d.monitor.Forget(id)
			continue
		}
		reason := fmt.Sprintf("no heartbeat for %s", d.term.cfg.HeartbeatTimeout)
		d.drop(p, reason)
		p.session.Close(errors.New(reason))
	}
}
