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
	history   history
	failures  failureCounter
	expired   expiredIDs

	shut     bool   // Shutdown came: nothing is started or accepted any more
	overtook string // why another leader acts; empty: we do
	run      uint64 // grows when tasks start or stop: a trigger of an older one is void

	triggering  *trigger // under way, or nil
	lastTrigger TriggerID

	pending []*PendingCheckpoint // by id
	linking *PendingCheckpoint   // of pending: its link is being added; or nil
	// disposed were aborted while their metadata was being written. What is
	// discarded depends on the answer.
	disposed []*PendingCheckpoint
	lastID   weir.CheckpointID // the largest id ever taken

	lastCleanup CleanupID
	cleaning    map[CleanupID]struct{} // those that hold back triggers
	// lastCompletion is when the last snapshot completed; zero: none did.
	lastCompletion time.Time
	backlog        []weir.OperatorID // operators that work off a backlog

	out      []Action // of the step under way
	roomMade bool     // in it: the decider is asked at its end
}

// New returns a coordinator that has done nothing yet.
func New(c Config) *CheckpointCoordinator {
	return &CheckpointCoordinator{
		config:    c,
		decider:   NewCheckpointRequestDecider(c.Options),
		scheduler: newPeriodicScheduler(c.Options),
		completed: NewCompletedCheckpointStore(c.Options.Retained),
		cleaning:  map[CleanupID]struct{}{},
	}
}

// Step takes an event and returns what to do, in order.
func (c *CheckpointCoordinator) Step(now time.Time, ev Event) []Action {
	c.out, c.roomMade = nil, false
	if c.overtook != "" {
		c.note("stopped acting: %s", ev)
		return c.out
	}
	c.dispatch(now, ev)
	if c.roomMade {
		c.examine(now)
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
	case TasksRunning:
		c.tasksRunning(now)
	case TasksStopped:
		c.stop(now, weir.CheckpointCoordinatorSuspend, "the job does not run any more")
	case JobFailover:
		c.stop(now, weir.JobFailoverRegion, "the job is restarted")
	case Shutdown:
		c.stop(now, weir.CheckpointCoordinatorShutdown, "the job has ended")
		c.shut = true
	case AttemptFailed:
		c.abortAwaiting(now, ev.Attempt, weir.TaskFailure, "%s failed")
	case AttemptFinished:
		c.abortAwaiting(now, ev.Attempt, weir.CheckpointDeclinedTaskClosing, "%s finished without it")
	case TimerFired:
		c.timerFired(now, ev.Key)
	case Requested:
		c.requested(now, ev)
	case BacklogChanged:
		c.backlogChanged(now, ev)
	case PlanCalculated:
		c.planCalculated(now, ev)
	case IDTaken:
		c.idTaken(now, ev)
	case IDFailed:
		c.idFailed(now, ev)
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
		c.note("master hooks are not supported yet: %s", ev)
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
	s := Statistics{
		Completed: c.history.completed, Failed: c.history.failed, Pending: int64(len(c.pending)),
		Restored: c.history.restored,
	}
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

func (c *CheckpointCoordinator) restored(ev Restored) {
	c.completed = NewCompletedCheckpointStore(c.config.Options.Retained, ev.Completed...)
	c.lastID = max(c.lastID, c.completed.latestOwned())
	c.history.restored = weir.NoCheckpoint
	if latest, ok := c.completed.Latest(); ok {
		c.history.restored = latest.ID
	}
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
			c.abort(now, p, reason, message)
		}
	}
}

// abortAwaiting aborts what cannot complete without this attempt (behaviour §5.6).
func (c *CheckpointCoordinator) abortAwaiting(now time.Time, a weir.AttemptID, reason weir.FailureReason, format string) {
	for _, p := range slices.Clone(c.pending) {
		if p.Awaits(a) {
			c.abort(now, p, reason, fmt.Sprintf(format, a))
		}
	}
}

func (c *CheckpointCoordinator) timerFired(now time.Time, key TimerKey) {
	if key.Kind == ExpiryTimer {
		if p := c.find(key.Checkpoint); p != nil && p.expires {
			p.expires = false
			c.expired.add(p.id)
			c.abort(now, p, weir.CheckpointExpired, fmt.Sprintf("not complete after %s: waiting for %s", c.config.Options.Timeout, p.lacking()))
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
	r := CheckpointRequest{Request: ev.Request, Kind: ev.Kind, At: now}
	switch {
	case ev.Kind.IsSavepoint():
		c.note("savepoints are not supported yet: %s", ev)
		c.refuse(RefusedRequest{r, weir.TriggerCheckpointFailure}, "savepoints are not supported yet")
	case c.shut:
		c.refuse(RefusedRequest{r, weir.CheckpointCoordinatorShutdown}, "the job has ended")
	default:
		c.submit(now, r)
	}
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
