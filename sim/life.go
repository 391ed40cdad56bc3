package sim

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobmanager/joboption"
	"github.com/weirflow/weir/rpc"
)

// healBound is how much simulated time a job has to end after the last fault.
const healBound = 2 * time.Minute

// maxSteps bounds the first phase, so that no seed takes much longer than others.
const maxSteps = 12_000

// maxRushes bounds the steps of what follows, for jobs that fail as fast as they are
// restarted.
const maxRushes = 100_000

// Result is what a life has come to.
type Result struct {
	Marks Marks
	Steps int
	Links int
	Age   time.Duration // simulated
	// Rescue is how much simulated time the job took to its end after the faults.
	Rescue time.Duration
	Trace  []string
	Plan   Plan
	// Asked is what the seed was asked, step by step, and what it answered.
	Asked []Asked
}

// Live lives one life. It is to be called on the root goroutine of a synctest bubble.
func Live(t TB, seed uint64, change func(*Plan)) Result {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0x5EED))
	plan := Draw(rng)
	if OfGraphs(seed) {
		plan.graph(rng)
	}
	if ofStops(seed) {
		plan.drawStop(rng)
	}
	if change != nil {
		change(&plan)
	}
	w := newWorld(t, seed, plan)
	for _, p := range append(w.jms[:len(w.jms):len(w.jms)], w.tms...) {
		w.start(p)
	}
	if ofCollectors(seed) && !plan.Calm() {
		w.collector()
	}
	c := w.submitFirst()
	if plan.Graph != nil {
		c = w.moveInLife(c)
	}
	if plan.Stop != nil {
		return w.stopAndGoOn(c)
	}
	for plan.Graph == nil && w.age() < plan.Life && w.steps < maxSteps {
		w.step()
	}
	w.heal()
	healed := w.age()
	w.rushUntil("the job has its whole answer", healBound, func() bool { return w.oracle.exact != 0 })
	if w.faults > 0 {
		w.marks.add(MarkRescued)
	}
	rescue := w.age() - healed
	if plan.Graph != nil {
		c = w.moveAfter(c)
	}
	c.cancel.Store(true)
	w.ended(c)
	if left := w.oracle.orphans(); w.Plan.Calm() && len(left) > 0 {
		w.fail("nothing failed, and yet these files of former links are left: %s", strings.Join(left, ", "))
	}
	w.collectAll()
	if plan.Graph == nil {
		w.goOn(c)
	}
	w.stop()
	return Result{Rescue: rescue, Marks: w.marks, Steps: w.steps, Links: w.oracle.links, Age: w.age(), Trace: w.lines, Plan: plan, Asked: w.chooser.asked}
}

// stopAndGoOn is the rest of a life whose first job is stopped with a savepoint.
func (w *World) stopAndGoOn(c *customer) Result {
	w.stopInLife(c)
	w.ended(c)
	if !w.Plan.Stop.Drain {
		w.goOn(c)
	}
	w.stop()
	return Result{Marks: w.marks, Steps: w.steps, Links: w.oracle.links, Age: w.age(), Trace: w.lines, Plan: w.Plan, Asked: w.chooser.asked}
}

// submitFirst submits the first job of the life.
func (w *World) submitFirst() *customer {
	if w.Plan.Graph != nil {
		return w.submitGraph(0, nil)
	}
	return w.submit(rpc.SubmitRequest{Entrypoint: entrypoint, Name: "first", RequestID: "request-1", Options: w.Plan.Options}, 0, w.Plan.Job.Ends)
}

// rushUntil demands progress.
func (w *World) rushUntil(what string, bound time.Duration, done func() bool) {
	w.t.Helper()
	until, most := w.now().Add(bound), w.steps+maxRushes
	for !done() {
		w.rush()
		if w.now().After(until) || w.steps > most {
			w.fail("after %s without faults it is still not so: %s\n%s", bound, what, w.state())
		}
	}
}

// goOn starts a job of another shape from the last checkpoint of the first, kills one
// of its TaskManagers, and demands the whole answer of it too.
func (w *World) goOn(first *customer) {
	w.t.Helper()
	from := first.newest.Load()
	if last := w.oracle.last(); from == nil || from.ID != last {
		w.fail("the last checkpoint is %d, clients are shown %v", last, from)
	}
	kept := w.oracle.files()
	w.job = w.second
	options := maps.Clone(w.Plan.Options)
	if ofClaims(w.Seed) {
		options[joboption.KeyClaimMode] = "CLAIM"
		w.oracle.claims(from.ID)
	}
	c := w.submit(rpc.SubmitRequest{
		Entrypoint: entrypoint, Name: "second", RequestID: "request-2", Options: options,
		From: from.Path, Params: map[string]string{"second": "true"},
	}, from.ID, w.Plan.Next.Ends)
	least := from.ID + weir.CheckpointID(w.rng.IntN(4))
	w.rushUntil("the second job has a checkpoint", healBound, func() bool { return w.oracle.last() > least || c.finished.Load() })
	w.kill(oneOf(w.rng, w.tms...), false, KillTaskManager)
	if c.ends {
		w.rushUntil("the second job has finished", healBound, c.finished.Load)
		if !w.oracle.covered() {
			w.fail("the second job has finished, and its last checkpoint, %d, does not have all numbers", w.oracle.last())
		}
		w.marks.add(MarkFinished)
	} else {
		w.rushUntil("the second job has its whole answer", healBound, func() bool { return w.oracle.exact != 0 })
		c.cancel.Store(true)
	}
	w.ended(c)
	w.collectAll()
	replaced := w.oracle.replaced()
	for _, name := range kept {
		_, err := w.disk.Stat(context.Background(), name)
		if err != nil && !replaced {
			w.fail("a file of the first job's checkpoint is gone: %v", err)
		}
		if err == nil && replaced {
			w.fail("the first job's checkpoint was claimed and replaced, and its file %s is still there", name)
		}
	}
	if replaced {
		w.marks.add(MarkClaimed)
	}
}

// ofClaims says whether the second job of a life claims what it starts from.
func ofClaims(seed uint64) bool { return seed%2 == 0 }

// ended waits until a job has ended. Then nothing of it is left.
func (w *World) ended(c *customer) {
	w.t.Helper()
	w.rushUntil("the job is over", healBound, func() bool { return c.canceled.Load() || c.finished.Load() })
	w.rushUntil("nothing of the job is left in the TaskManagers", time.Minute, func() bool {
		for _, p := range w.tms {
			if i := p.running(); i == nil || i.stack.Stats().UsedBuffers > 0 || i.pages.Stats().InUse > 0 {
				return false
			}
		}
		return true
	})
	w.oracle.look()
}

// stop ends all processes.
func (w *World) stop() {
	w.t.Helper()
	w.over.Store(true)
	for _, p := range append(w.tms[:len(w.tms):len(w.tms)], w.jms...) {
		w.end(p.running(), 10*time.Second)
	}
	w.rushUntil("all processes have ended", time.Minute, func() bool { return len(w.group.Live()) == 0 })
	w.rest()
	if err := w.group.Stop(context.Background()); err != nil {
		w.fail("%v", err)
	}
}

// state describes what is up and what waits, for failures.
func (w *World) state() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var b strings.Builder
	for _, c := range w.mu.calls {
		b.WriteString("  waits: " + c.name + "\n")
	}
	for _, name := range w.mu.names {
		if len(w.mu.pipes[name].queue) > 0 {
			b.WriteString("  on its way: " + name + "\n")
		}
	}
	return b.String() + w.heard()
}

// firstLine cuts a text for the trace.
func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// client returns the JobManager that answers to clients: whichever accepts the call.
func (w *World) client(ctx context.Context, call func(g rpc.ClientGateway) error) error {
	err := errNetwork
	for _, p := range w.jms {
		i := p.running()
		if i == nil {
			continue
		}
		if err = call(i.jm); err == nil || !errors.Is(err, rpc.ErrNotLeader) {
			return err
		}
	}
	return err
}
