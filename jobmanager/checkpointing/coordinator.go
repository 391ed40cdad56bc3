package checkpointing

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/assert"
)

// Config is what a coordinator is made of.
type Config struct {
	Job weir.JobID
	// Options are valid.
	Options Options
	// Operators are those with a coordinator (sources), in order of the graph.
	Operators []weir.OperatorID
	// Hooks are the names of the master hooks.
	Hooks []string
	// Rand draws the first periodic delay; required.
	Rand *rand.Rand
}

// CheckpointCoordinator is the machine of one job's checkpoints. Only the job's
// loop calls it.
type CheckpointCoordinator struct {
	config    Config
	decider   *CheckpointRequestDecider
	scheduler periodicScheduler
	completed *CompletedCheckpointStore
	// notified is the newest checkpoint whose completion tasks are told of, or
	// NoCheckpoint.
	notified weir.CheckpointID
	shared   *SharedStateRegistry
	history  history
	failures failureCounter
	expired  expiredIDs

	shut     bool   // Shutdown came: nothing is started or accepted any more
	overtook string // why another leader acts; empty: we do
	run      uint64 // grows when tasks start or stop: a trigger of an older one is void

	triggering  *trigger // under way, or nil
	lastTrigger TriggerID

	pending []*PendingCheckpoint // by id
	linking *PendingCheckpoint   // of pending: its link is being added; or nil
	// disposed were aborted while their metadata was being written, or their location
	// made. What is discarded depends on the answer.
	disposed []*PendingCheckpoint
	lastID   weir.CheckpointID // the largest id ever taken

	lastCleanup CleanupID
	cleaning    map[CleanupID]struct{} // those that hold back triggers
	// lastCompletion is when the last snapshot completed; zero: none did.
	lastCompletion time.Time
	backlog        []weir.OperatorID // operators that work off a backlog

	out      []Action // of the step under way
	roomMade bool     // in it: the decider is asked at its end
	failJob  *FailJob // in it: the job is to be failed
}

// New returns a coordinator that has done nothing yet.
func New(c Config) *CheckpointCoordinator {
	return &CheckpointCoordinator{
		config:    c,
		decider:   NewCheckpointRequestDecider(c.Options),
		scheduler: newPeriodicScheduler(c.Options),
		completed: NewCompletedCheckpointStore(c.Options.Retained),
		failures:  failureCounter{tolerable: c.Options.TolerableFailures},
		shared:    NewSharedStateRegistry(),
		cleaning:  map[CleanupID]struct{}{},
	}
}

// Step takes an event and returns what to do, in order.
func (c *CheckpointCoordinator) Step(now time.Time, ev Event) []Action {
	c.out, c.roomMade, c.failJob = nil, false, nil
	if c.overtook != "" {
		c.note("stopped acting: %s", ev)
		return c.out
	}
	c.dispatch(now, ev)
	if c.roomMade {
		c.examine(now)
	}
	if c.failJob != nil {
		c.emit(*c.failJob)
	}
	if assert.Enabled {
		c.check()
	}
	return c.out
}

// dispatch gives an event to whom it concerns.
func (c *CheckpointCoordinator) dispatch(now time.Time, ev Event) {
	switch ev := ev.(type) {
	case Restored:
		c.restored(ev)
	case StateRestored:
		ev.From.At = now
		c.history.restored(ev.From)
	case TasksRunning:
		c.tasksRunning(now)
	case TasksStopped:
		c.stop(now, weir.CheckpointCoordinatorSuspend, "the periodic scheduler was stopped")
	case JobFailover:
		c.stop(now, weir.JobFailoverRegion, "the job is restarted")
	case Shutdown:
		c.stop(now, weir.CheckpointCoordinatorShutdown, "the job has ended")
		c.shut = true
	case AttemptFailed:
		c.abortAwaiting(now, ev.Attempt, weir.TaskFailure, fmt.Sprintf("%s failed", ev.Attempt))
	case AttemptFinished:
		c.abortAwaiting(now, ev.Attempt, weir.CheckpointDeclinedTaskClosing, fmt.Sprintf("%s finished without it", ev.Attempt))
	case TimerFired:
		c.timerFired(now, ev.Key)
	case Requested:
		c.requested(now, ev)
	case BacklogChanged:
		c.backlogChanged(now, ev)
	case EndOfData:
		c.endOfDataReached(now)
	case IntervalChanged:
		c.intervalChanged(now, ev)
	default:
		c.answered(now, ev)
	}
}

// answered gives an answer to an action to whom it concerns.
func (c *CheckpointCoordinator) answered(now time.Time, ev Event) {
	switch ev := ev.(type) {
	case PlanCalculated:
		c.planCalculated(now, ev)
	case IDTaken:
		c.idTaken(now, ev)
	case IDFailed:
		c.idFailed(now, ev)
	case LocationInitialized:
		c.locationInitialized(now, ev)
	case LocationFailed:
		c.locationFailed(now, ev)
	case CoordinatorSnapshotted:
		c.coordinatorSnapshotted(now, ev)
	case CoordinatorFailed:
		c.coordinatorFailed(now, ev)
	case TriggerFailed:
		c.taskNotTriggered(now, ev)
	case Acknowledged:
		c.acknowledged(now, ev)
	case Declined:
		c.declined(now, ev)
	case MetadataWritten:
		c.metadataWritten(now, ev)
	case MetadataFailed:
		c.metadataFailed(now, ev)
	case LinkAdded:
		c.linkAdded(now, ev)
	case LinkFailed:
		c.linkFailed(now, ev)
	case OvertakenByOther:
		c.overtaken(ev.Message)
	case CleanupEnded:
		c.cleanupEnded(ev.Cleanup)
	case HookCompleted:
		c.hookCompleted(now, ev)
	case HookFailed:
		c.hookFailed(now, ev)
	default:
		assert.That(false, "an event that nobody takes", ev)
	}
}

// Latest is what a restore resumes from, if there is anything. While Linking it
// may be about to change.
func (c *CheckpointCoordinator) Latest() (CompletedCheckpoint, bool) { return c.completed.Latest() }

// Retained are the completed checkpoints that are kept, oldest first.
func (c *CheckpointCoordinator) Retained() []CompletedCheckpoint { return c.completed.List() }

// Linking says that a link is being added and its end is not known. A restore
// must wait for LinkSettled: the checkpoint may be complete already.
func (c *CheckpointCoordinator) Linking() bool { return c.linking != nil }

// Statistics is a copy for outsiders.
func (c *CheckpointCoordinator) Statistics(now time.Time) Statistics {
	s := c.history.statistics()
	s.Pending = int64(len(c.pending))
	for _, p := range slices.Backward(c.pending) {
		ps := p.statistics(now)
		ps.Subtasks = slices.Clone(ps.Subtasks) // acknowledgements still change them
		s.Recent = append(s.Recent, ps)
	}
	for _, e := range slices.Backward(c.history.recent) {
		s.Recent = append(s.Recent, e)
	}
	return s
}

// Pending is the number of pending snapshots.
func (c *CheckpointCoordinator) Pending() int { return len(c.pending) }

// Options are those in force: the interval may have been changed.
func (c *CheckpointCoordinator) Options() Options { return c.config.Options }

func (c *CheckpointCoordinator) restored(ev Restored) {
	c.completed = NewCompletedCheckpointStore(c.config.Options.Retained, ev.Completed...)
	for _, done := range ev.Completed {
		c.shared.Restore(done)
	}
	c.notified = c.completed.latestOfJob()
	c.lastID = max(c.lastID, c.notified)
}

func (c *CheckpointCoordinator) tasksRunning(now time.Time) {
	if c.shut {
		c.note("shut down: tasks running")
		return
	}
	c.stop(now, weir.CheckpointCoordinatorSuspend, "the tasks started anew")
	c.emit(c.scheduler.start(now, c.config.Rand)...)
}

// stop ends the periodic scheduler and everything that waits or is pending. What is
// being linked is left: its link may exist already.
func (c *CheckpointCoordinator) stop(now time.Time, reason weir.FailureReason, message string) {
	c.run++
	c.emit(c.scheduler.stop()...)
	for _, r := range c.decider.AbortAll(reason) {
		c.refuse(r, message)
	}
	for _, p := range slices.Clone(c.pending) {
		if p.stage != atLink {
			c.abort(now, p, failureOf(p, reason, message))
		}
	}
}

// abortAwaiting aborts what cannot complete without this attempt (behaviour §5.6).
func (c *CheckpointCoordinator) abortAwaiting(now time.Time, a weir.AttemptID, reason weir.FailureReason, message string) {
	if c.triggering != nil {
		c.triggering.lose(a, reason, message)
	}
	for _, p := range slices.Clone(c.pending) {
		if p.Awaits(a) {
			c.abort(now, p, failureOf(p, reason, message))
		}
	}
}

func (c *CheckpointCoordinator) timerFired(now time.Time, key TimerKey) {
	if key.Kind == ExpiryTimer {
		if p := c.find(key.Checkpoint); p != nil && p.expires {
			p.expires = false
			c.expired.add(p.id)
			c.abort(now, p, failureOf(p, weir.CheckpointExpired, fmt.Sprintf("not complete after %s: waiting for %s", c.config.Options.Timeout, p.lacking())))
		}
		return
	}
	current, next := c.scheduler.fired(now, key)
	if !current {
		return
	}
	c.emit(next...)
	c.submit(now, CheckpointRequest{Kind: weir.Checkpoint, Periodic: true, At: now})
}

func (c *CheckpointCoordinator) requested(now time.Time, ev Requested) {
	r := CheckpointRequest{Request: ev.Request, Kind: ev.Kind, Location: ev.Location, At: now}
	switch {
	case c.shut:
		c.refuse(RefusedRequest{r, weir.CheckpointCoordinatorShutdown}, "the job has ended")
	case ev.Kind > weir.TerminateSavepoint:
		c.refuse(RefusedRequest{r, weir.TriggerCheckpointFailure}, ev.Kind.String()+" is no kind of snapshot")
	case ev.Kind.IsSavepoint() && ev.Location == "":
		c.refuse(RefusedRequest{r, weir.TriggerCheckpointFailure}, "a savepoint needs a location")
	case !ev.Kind.IsSavepoint() && ev.Location != "":
		c.refuse(RefusedRequest{r, weir.TriggerCheckpointFailure}, "a checkpoint has a location of its own")
	default:
		r.Forced = ev.Kind.IsSavepoint() && !c.config.Options.Unaligned
		c.submit(now, r)
	}
}

// endOfDataReached requests a checkpoint at once: all tasks wait for it.
func (c *CheckpointCoordinator) endOfDataReached(now time.Time) {
	if c.shut {
		c.note("shut down: end of data")
		return
	}
	c.submit(now, CheckpointRequest{Kind: weir.Checkpoint, At: now})
}

func (c *CheckpointCoordinator) intervalChanged(now time.Time, ev IntervalChanged) {
	o, err := c.config.Options.WithInterval(ev.Interval)
	if err != nil {
		c.note("%s: %s", ev, err)
		return
	}
	c.config.Options = o
	c.emit(c.scheduler.setOptions(now, o)...)
}

func (c *CheckpointCoordinator) backlogChanged(now time.Time, ev BacklogChanged) {
	at := slices.Index(c.backlog, ev.Operator)
	switch {
	case ev.Backlog && at < 0:
		c.backlog = append(c.backlog, ev.Operator)
	case !ev.Backlog && at >= 0:
		c.backlog = slices.Delete(c.backlog, at, at+1)
	}
	c.emit(c.scheduler.setBacklog(now, len(c.backlog) > 0)...)
}

// overtaken stops everything at once: what we have may be the other leader's.
func (c *CheckpointCoordinator) overtaken(message string) {
	c.overtook = OvertakenByOther{message}.String()
	c.emit(c.scheduler.stop()...)
	for _, p := range c.pending {
		c.cancelExpiry(p)
		if p.request != 0 {
			c.emit(RequestEnded{Request: p.request, Checkpoint: p.id, Reason: weir.CheckpointCoordinatorShutdown, Message: c.overtook})
		}
	}
	for _, r := range c.decider.AbortAll(weir.CheckpointCoordinatorShutdown) {
		c.refuse(r, c.overtook)
	}
	if t := c.triggering; t != nil && t.checkpoint == nil && !t.request.Periodic {
		c.refuse(RefusedRequest{t.request, weir.CheckpointCoordinatorShutdown}, c.overtook)
	}
	c.pending, c.linking, c.disposed, c.triggering = nil, nil, nil, nil
	c.emit(StopActing{Message: message})
}

// cleanupEnded makes room, if the cleanup held back triggers.
func (c *CheckpointCoordinator) cleanupEnded(id CleanupID) {
	if _, counts := c.cleaning[id]; counts {
		delete(c.cleaning, id)
		c.roomMade = true
	}
}

func (c *CheckpointCoordinator) find(id weir.CheckpointID) *PendingCheckpoint {
	for _, p := range c.pending {
		if p.id == id {
			return p
		}
	}
	return nil
}

func (c *CheckpointCoordinator) emit(a ...Action) { c.out = append(c.out, a...) }

func (c *CheckpointCoordinator) note(format string, args ...any) {
	c.emit(Note{Text: fmt.Sprintf(format, args...)})
}

// check asserts what must hold between steps.
func (c *CheckpointCoordinator) check() {
	last := weir.NoCheckpoint
	for _, p := range c.pending {
		assert.That(p.id > last && p.id <= c.lastID, "pending checkpoint %d after %d, last taken %d", p.id, last, c.lastID)
		assert.That(!p.disposed, "pending checkpoint %d is disposed of", p.id)
		assert.That((p.stage == atLink) == (p == c.linking), "checkpoint %d is at stage %d", p.id, p.stage)
		assert.That(p.stage < atMetadata || p.FullyAcknowledged(), "checkpoint %d is written, but not acknowledged", p.id)
		last = p.id
	}
}
