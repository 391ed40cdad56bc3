package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/weirflow/weir/blobstore/mem"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/netstack/link"
	"github.com/weirflow/weir/operator"
)

// TB is what a life needs of a test.
type TB interface {
	Helper()
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// World is one life. Its methods are for the bubble's root goroutine; what the
// processes call is in the seams' files and goes through mu.
type World struct {
	t       TB
	Seed    uint64
	Plan    Plan
	rng     *rand.Rand // of the chooser
	chooser chooser

	// The outside, which outlives processes.
	network  *link.Memory
	disk     *mem.Store
	registry *ha.Memory
	catalog  operator.Catalog
	job      *job // the first, then the second
	second   *job
	oracle   *Oracle
	group    *group.Group // calls of clients, and processes that are ending
	logger   *zap.Logger

	jms, tms []*process
	cuts     map[direction]time.Time // of pairs: both directions
	stalled  map[direction]time.Time
	healed   bool
	healedAt time.Duration // the age when it was healed last
	faults   int
	snipes   int
	steps    int
	said     atomic.Pointer[string] // the last that a client heard
	// collected says that gc has deleted something.
	collected atomic.Bool
	over      atomic.Bool // who looks after things may go
	nextOne   time.Time   // fault
	noticeAt  time.Time   // when a leader that was overtaken learns of it; zero: there is none
	sniped    sniped
	marks     Marks
	began     time.Time
	lines     []string
	sessions  int
	// firstAsked is the JobManager that the TaskManager that dials now asks first.
	firstAsked int

	mu struct {
		sync.Mutex
		pipes map[string]*pipe
		names []string // of the pipes, sorted
		calls []*call  // that wait for a verdict, sorted by name
		notes []note   // what was seen in seams since the last step
		wrong []string // what a seam or the oracle found wrong
		marks []string // set since the last step
	}
}

// direction is one direction between two hosts.
type direction struct{ from, to string }

// note is a line for the trace that was written by another goroutine.
type note struct{ topic, text string }

// Marks count what a suite must have seen.
type Marks map[string]int

func (m Marks) add(what string) { m[what]++ }

// Marks that a suite must have, beside one of each [Kind] (DECISIONS 36).
const (
	MarkRestored    = "restored from a checkpoint"
	MarkKillPending = "killed with a checkpoint pending"
	MarkKillLinked  = "killed between link and notification"
	MarkKillLinking = "task killed while a link was being added"
	MarkLostAnswer  = "answer of a link lost"
	MarkCollected   = "garbage collected"
	MarkClaimed     = "claimed, replaced and deleted"
	MarkFinished    = "finished by itself, after a kill"
	MarkRescued     = "finished after faults"
	MarkStopped     = "stopped with a savepoint, among faults"
	MarkStopUndone  = "stop undone after its savepoint was complete"
	MarkSavepoint   = "savepoint taken and read"
	MarkInFlight    = "in-flight data in a checkpoint"
	MarkTimedOut    = "in-flight data after a timeout while aligning"
	MarkRecovered   = "in-flight data restored"
	MarkRescaled    = "in-flight data restored at another parallelism"
)

// AllMarks are the marks that a large suite must have.
func AllMarks() []string {
	all := []string{
		MarkCollected, MarkClaimed, MarkRestored, MarkKillPending, MarkKillLinked, MarkKillLinking, MarkLostAnswer, MarkFinished, MarkRescued,
		MarkStopped, MarkStopUndone, MarkSavepoint,
		MarkInFlight, MarkTimedOut, MarkRecovered, MarkRescaled,
	}
	for _, k := range kinds {
		all = append(all, string(k))
	}
	return all
}

// newWorld makes a world; nothing runs.
func newWorld(t TB, seed uint64, plan Plan) *World {
	w := &World{
		t: t, Seed: seed, Plan: plan, chooser: newChooser(seed), disk: mem.New(), registry: ha.NewMemory(2 * time.Second),
		cuts: make(map[direction]time.Time), stalled: make(map[direction]time.Time), marks: make(Marks), began: time.Now(),
		logger: zap.NewNop(),
	}
	w.rng = rand.New(w.chooser.source)
	w.network = link.NewMemory(courier{w})
	w.mu.pipes = make(map[string]*pipe)
	w.group = group.New(context.Background(), "sim")
	w.oracle = newOracle(w)
	w.job, w.second = &job{plan: plan.Job, oracle: w.oracle}, &job{plan: plan.Next, oracle: w.oracle}
	var err error
	if w.catalog, err = newCatalog(w.job, w.second); err != nil {
		t.Fatalf("%v", err)
	}
	for i := range plan.JobManagers {
		w.jms = append(w.jms, newProcess(fmt.Sprintf("jm-%d", i)))
	}
	for i := range plan.TaskManagers {
		w.tms = append(w.tms, newProcess(fmt.Sprintf("tm-%d", i)))
	}
	return w
}

func (w *World) now() time.Time        { return time.Now() }
func (w *World) age() time.Duration    { return time.Since(w.began) }
func (w *World) chance(p float64) bool { return p > 0 && w.rng.Float64() < p }
func (w *World) duration(least, most time.Duration) time.Duration {
	// Short ones are more frequent than long ones: the logarithm is uniform.
	d := least
	for d < most && w.rng.IntN(3) > 0 {
		d *= 2
	}
	return min(most, d+time.Duration(w.rng.Int64N(int64(d))))
}

// trace adds a line to the trace.
func (w *World) trace(topic, format string, args ...any) {
	w.lines = append(w.lines, fmt.Sprintf("%9.4fs  %-9s %s", w.age().Seconds(), topic, w.oracle.short(fmt.Sprintf(format, args...))))
}

// note is trace for other goroutines.
func (w *World) note(topic, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.notes = append(w.mu.notes, note{topic, fmt.Sprintf(format, args...)})
}

// wrong says that an invariant does not hold. It may be called from any goroutine;
// the life ends in the next step.
func (w *World) wrong(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.wrong = append(w.mu.wrong, fmt.Sprintf(format, args...))
}

// mark sets a mark. Any goroutine may call it.
func (w *World) mark(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.marks = append(w.mu.marks, what)
}

// rest waits until nobody can go on without us, and looks at what has happened.
func (w *World) rest() {
	w.answered()
	synctest.Wait()
	w.steps++
	w.mu.Lock()
	notes, wrong := w.mu.notes, w.mu.wrong
	for _, m := range w.mu.marks {
		w.marks.add(m)
	}
	w.mu.notes, w.mu.marks = nil, nil
	w.mu.Unlock()
	slices.SortStableFunc(notes, func(a, b note) int {
		if a.topic+a.text < b.topic+b.text {
			return -1
		}
		return 1
	})
	for _, n := range notes {
		w.trace(n.topic, "%s", n.text)
	}
	if len(wrong) > 0 {
		w.fail("%s", wrong[0])
	}
	w.oracle.look()
}

// pass lets time pass.
func (w *World) pass(d time.Duration) {
	w.chooser.passed += d
	if d > 0 {
		<-time.After(d)
	}
}

// step does one thing that can happen next.
func (w *World) step() {
	w.rest()
	w.ask()
	w.healDue()
	if !w.healed {
		if w.snipe() {
			return
		}
		if !w.noticeAt.IsZero() && w.chance(0.02) {
			w.unsettle()
			return
		}
		if w.now().After(w.nextOne) && len(w.Plan.Faults) > 0 {
			w.nextOne = w.now().Add(time.Duration(w.rng.Int64N(int64(2 * w.Plan.Every))))
			w.inject(oneOf(w.rng, w.Plan.Faults...))
			return
		}
	}
	n := w.ready()
	if n == 0 || w.chance(w.Plan.Lag) {
		d := time.Duration(1 + w.rng.Int64N(int64(2*w.Plan.Tick)))
		if n == 0 && w.rng.IntN(4) == 0 {
			d *= 10
		}
		w.pass(d)
		return
	}
	w.choose(w.rng.IntN(n))
}

// maxSnipes bounds how often a life is hit in critical moments.
const maxSnipes = 8

// snipe kills a process in a critical moment, if the seed wants it. The moment after a
// link is short, so that it is hit more often.
func (w *World) snipe() bool {
	pending, linked := w.oracle.moments()
	var hit bool
	switch {
	case w.snipes >= maxSnipes:
	case linked != 0 && w.chance(4*w.Plan.Snipe):
		hit = w.kill(w.oracle.leader(), false, KillJobManager)
	case linked == 0 && pending != 0 && w.linking() && w.chance(4*w.Plan.Snipe):
		// The job fails while its link is on the way, and stays there for a while.
		if leader := w.oracle.leader(); leader != nil {
			leader.trouble[RegistryHang] = w.now().Add(w.duration(300*time.Millisecond, 10*time.Second))
			hit = w.kill(w.someRunning(w.tms), false, KillTaskManager)
			w.mark(MarkKillLinking)
		}
	case linked == 0 && pending != 0 && w.chance(w.Plan.Snipe/2):
		if w.chance(0.3) {
			hit = w.kill(w.oracle.leader(), false, KillJobManager)
		} else {
			hit = w.kill(w.someRunning(w.tms), false, KillTaskManager)
		}
	}
	if hit {
		w.snipes++
	}
	return hit
}

// linking says whether a link is on its way to the registry.
func (w *World) linking() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.mu.calls {
		if !c.after && strings.HasPrefix(c.what, "txn") && strings.Contains(c.what, "/chain/") {
			return true
		}
	}
	return false
}

// ready counts what could happen next: heads of links, then calls.
func (w *World) ready() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, name := range w.mu.names {
		if w.deliverable(w.mu.pipes[name]) {
			n++
		}
	}
	for _, c := range w.mu.calls {
		if w.answerable(c) {
			n++
		}
	}
	return n
}

// choose makes the n-th thing happen that ready counted.
func (w *World) choose(n int) {
	w.mu.Lock()
	for _, name := range w.mu.names {
		p := w.mu.pipes[name]
		if !w.deliverable(p) {
			continue
		}
		if n == 0 {
			most := 1 + w.rng.IntN(w.Plan.Burst)
			items := p.takeLocked(most)
			w.mu.Unlock()
			w.chosen("%s, at most %d", name, most)
			w.deliver(p, items)
			return
		}
		n--
	}
	for i, c := range w.mu.calls {
		if !w.answerable(c) {
			continue
		}
		if n == 0 {
			w.mu.calls = slices.Delete(w.mu.calls, i, i+1)
			w.mu.Unlock()
			w.chosen("%s", c.name)
			w.answer(c)
			return
		}
		n--
	}
	w.mu.Unlock()
}

// rush does everything that could happen now, in order, and lets a little time pass:
// the world after it was healed.
func (w *World) rush() {
	w.rest()
	w.ask()
	w.healDue()
	for n := w.ready(); n > 0; n = w.ready() {
		for range n {
			if w.ready() == 0 {
				break
			}
			w.choose(0)
		}
		w.rest()
	}
	w.pass(w.Plan.Tick + time.Millisecond)
	w.checkStarvation()
	w.checkPromptness()
}

// fail ends the life with all that is known about it.
func (w *World) fail(format string, args ...any) {
	w.t.Helper()
	from := max(0, len(w.lines)-400)
	for _, l := range w.lines[from:] {
		w.t.Logf("%s", l)
	}
	w.t.Logf("plan: %+v", w.Plan)
	if w.Plan.Graph != nil {
		w.t.Logf("the job that runs: %+v", w.Plan.Graph.Stages[w.Plan.Graph.stage])
	}
	w.abandon()
	w.t.Fatalf("seed %d, step %d, %.4fs: %s\nrepeat: WEIR_SEED=%d go test -v -tags invariants ./sim", w.Seed, w.steps, w.age().Seconds(), fmt.Sprintf(format, args...), w.Seed)
}
