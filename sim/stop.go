package sim

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/snapshotmeta"
)

// StopPlan ends the first job with a savepoint, in the middle of its faults. The second
// one starts from that.
type StopPlan struct {
	At         time.Duration // of the life
	Drain      bool          // then there is no second job: nothing is left to do
	Undo       bool          // a TaskManager is killed as soon as the savepoint is complete
	Savepoints float64       // chance that a look at the job takes a savepoint
	Seed       uint64        // of what the customer draws
}

// ofStops says whether the first job of a seed's life is stopped.
func ofStops(seed uint64) bool { return seed%5 == 4 }

// drawStop draws when.
func (p *Plan) drawStop(rng *rand.Rand) {
	p.Stop = &StopPlan{
		At: p.Life/4 + time.Duration(rng.Int64N(int64(p.Life/2))), Drain: rng.IntN(4) == 0,
		Savepoints: oneOf(rng, 0, 0.2, 0.5), Seed: rng.Uint64(), Undo: rng.IntN(2) == 0,
	}
	p.Job.Ends = false
}

// stopper is the part of a customer that takes savepoints, and stops its job with one.
type stopper struct {
	plan   *StopPlan
	rng    *rand.Rand
	begin  atomic.Bool // stop it from now on
	again  atomic.Bool // ask once more
	done   atomic.Pointer[rpc.StopReply]
	undone atomic.Int32 // stops that were undone
	agreed atomic.Bool  // the answer was the same once more

	// The rest is for the customer's goroutine.

	tries   int
	answers map[string]rpc.StopReply // by request
	seen    string                   // request that was shown to be under way
	taken   int                      // savepoints
	ended   int                      // looks at a job that had ended, without an answer
	rest    int                      // looks at the job before it is stopped again
}

func newStopper(p *StopPlan) *stopper {
	if p == nil {
		return nil
	}
	return &stopper{plan: p, rng: rand.New(rand.NewPCG(p.Seed, 1)), answers: make(map[string]rpc.StopReply)}
}

func (s *stopper) request() string { return fmt.Sprintf("stop-%d", s.tries) }

// savepoint takes a savepoint now and then, and reads it.
func (c *customer) savepoint(ctx context.Context, g rpc.ClientGateway, job string) {
	s := c.stopper
	if s.begin.Load() || s.rng.Float64() >= s.plan.Savepoints {
		return
	}
	s.taken++
	r, err := g.TakeSnapshot(ctx, rpc.SnapshotRequest{Job: job, RequestID: fmt.Sprintf("savepoint-%d", s.taken), Kind: weir.Savepoint})
	if err != nil {
		c.w.say(err.Error())
		return
	}
	c.w.oracle.readSavepoint(r)
	c.w.mark(MarkSavepoint)
}

// lookAways is how many looks at a job pass between two stops of it.
const lookAways = 10

// stop asks for the job's end. A request that was answered has the same answer ever
// after; one that has failed is followed by another. over: it was under way, and is not
// any more, though the job runs, so it must have failed.
func (c *customer) stop(ctx context.Context, g rpc.ClientGateway, job string, over bool) error {
	s := c.stopper
	if s.rest > 0 {
		s.rest--
		return nil
	}
	request := s.request()
	r, err := g.StopJob(ctx, rpc.StopRequest{Job: job, RequestID: request, Drain: s.plan.Drain})
	if err != nil {
		if rpc.CodeOf(err) != rpc.CodeFailedPrecondition {
			return err
		}
		if _, answered := s.answers[request]; answered {
			c.w.wrong("%s was answered with a savepoint, and now: %v", request, err)
		}
		s.tries++ // it does not run, or there is no savepoint
		return nil
	}
	if was, answered := s.answers[request]; answered && (was.Path != r.Path || was.Checkpoint != r.Checkpoint || was.Failure != r.Failure) {
		c.w.wrong("%s was answered with %+v, and now with %+v", request, was, r)
	}
	if over && r.Failure == "" {
		c.w.wrong("%s was under way, then not any more, and now it is answered with %+v: a leader has forgotten it", request, r)
	}
	_, repeated := s.answers[request]
	s.answers[request] = r
	c.w.oracle.stopped(r)
	switch {
	case r.Failure != "":
		if !repeated {
			s.undone.Add(1)
			c.w.mark(MarkStopUndone)
		}
		if repeated {
			s.tries++
			s.rest = lookAways // checkpoints go on, and subsume the savepoint
		}
	case r.Status != rpc.JobFinished:
		c.w.wrong("%s: the job is %s", request, r.Status)
	default:
		s.done.Store(&r)
		c.newest.Store(&rpc.CheckpointInfo{ID: r.Checkpoint, Path: r.Path})
		if repeated && s.again.Load() {
			s.agreed.Store(true)
		}
	}
	return nil
}

// endedByItself says whether the job has ended though its last stop was answered as undone:
// one that was drained has nothing left to do when it restarts from its savepoint.
func (c *customer) endedByItself(d rpc.JobDetail) bool {
	s := c.stopper
	if s.done.Load() != nil {
		return false
	}
	if s.ended++; s.ended > lookAways {
		c.w.wrong("the job is %s, drain %t, and no stop is answered so: last asked %s, answers %+v", d.Status, s.plan.Drain, s.request(), s.answers)
	}
	for _, r := range s.answers {
		if d.Status == rpc.JobFinished && s.plan.Drain {
			s.done.Store(&r)
			s.agreed.Store(true)
			c.finished.Store(true)
			return true
		}
	}
	return false
}

// stopped looks at the answer of a stop: its savepoint is a link.
func (o *Oracle) stopped(r rpc.StopReply) {
	o.mu.Lock()
	defer o.mu.Unlock()
	l, ok := o.mu.linked[r.Checkpoint]
	switch {
	case !ok || !l.Kind.IsSynchronous():
		o.w.wrong("a stop is answered with %d, which is no link of a stop: %+v", r.Checkpoint, l)
	case o.w.pathOf(l.Metadata) != r.Path:
		o.w.wrong("a stop is answered with %s, the link of %d is %s", r.Path, r.Checkpoint, l.Metadata)
	}
	o.mu.kept[r.Checkpoint] = l
	switch {
	case r.Failure == "" && r.Checkpoint != o.mu.newest && l.Kind != weir.TerminateSavepoint:
		o.w.wrong("the job was stopped at %d, its newest link is %d", r.Checkpoint, o.mu.newest)
	}
}

// readSavepoint reads a savepoint that was announced, and compares it.
func (o *Oracle) readSavepoint(r rpc.SnapshotReply) {
	o.mu.Lock()
	job := o.mu.job
	o.mu.Unlock()
	name := r.Path[len(o.w.disk.Location())+1:] + "/" + snapshotmeta.MetadataFile
	l := ha.Link{Checkpoint: r.Checkpoint, Metadata: name}
	if _, err := o.read(job, l); err != nil {
		o.w.wrong("savepoint %d: %v", r.Checkpoint, err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.kept[r.Checkpoint] = l
}

// keeps reads all savepoints that clients were told of: they are never deleted.
func (o *Oracle) keeps() error {
	o.mu.Lock()
	job, kept := o.mu.job, maps.Clone(o.mu.kept)
	o.mu.Unlock()
	for id, l := range kept {
		if _, err := o.read(job, l); err != nil {
			return fmt.Errorf("savepoint %d: %w", id, err)
		}
	}
	return nil
}

// snipeStop kills a process now and then while the job is being stopped: more likely
// between the link of the savepoint and the job's end.
func (w *World) snipeStop(s *stopper) {
	linked := w.oracle.stopLinked()
	switch n := &w.sniped; {
	case w.Plan.Calm():
	case linked && n.tasks < mostSniped && (s.plan.Undo && n.tasks == 0 || w.chance(0.1)):
		n.tasks++
		w.kill(oneOf(w.rng, w.tms...), false, KillTaskManager)
	case n.told < s.undone.Load():
		n.told++ // a client was told that a stop is undone; whoever leads next must know
		if w.chance(0.5) {
			w.kill(w.oracle.leader(), false, KillJobManager)
		}
	case n.leaders < mostSniped && (linked && w.chance(0.02) || w.chance(0.003)):
		n.leaders++
		w.kill(w.oracle.leader(), false, KillJobManager)
	}
}

// sniped counts what was killed for the sake of a stop.
type sniped struct {
	tasks, leaders int
	told           int32 // stops of which a client was told that they are undone
}

// mostSniped is how many processes of a kind are killed for the sake of a stop.
const mostSniped = 3

// stopLinked says whether the newest link is the savepoint of a stop.
func (o *Oracle) stopLinked() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mu.linked[o.mu.newest].Kind.IsSynchronous()
}

// pathOf is how a snapshot is shown to clients.
func (w *World) pathOf(metadata string) string {
	return path.Join(w.disk.Location(), path.Dir(metadata))
}

// stopInLife lives the first phase, stops the job in the middle of it, and demands that it
// is stopped once nothing fails any more. Then the answer stays the same, whoever leads.
func (w *World) stopInLife(c *customer) {
	w.t.Helper()
	s := c.stopper
	for w.age() < w.Plan.Life && w.steps < maxSteps && s.done.Load() == nil {
		if w.age() >= s.plan.At {
			s.begin.Store(true)
			w.snipeStop(s)
		}
		w.step()
	}
	s.begin.Store(true)
	w.heal()
	w.rushUntil("the job is stopped", healBound, func() bool { return s.done.Load() != nil })
	if w.faults > 0 {
		w.marks.add(MarkRescued)
		w.marks.add(MarkStopped)
	}
	if p := w.oracle.leader(); p != nil && w.rng.IntN(2) == 0 {
		w.kill(p, false, KillJobManager)
	}
	s.again.Store(true)
	w.rushUntil("the answer of the stop is the same again", healBound, s.agreed.Load)
	w.rushUntil("all processes are up again", healBound, func() bool {
		return !slices.ContainsFunc(append(w.jms[:len(w.jms):len(w.jms)], w.tms...), (*process).dead)
	})
	if err := w.oracle.keeps(); err != nil {
		w.fail("%v", err)
	}
}
