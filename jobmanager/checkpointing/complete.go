package checkpointing

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/assert"
)

// ignored says why a task's message has no effect at all, if so.
func (c *CheckpointCoordinator) ignored(from weir.AttemptID) (why string) {
	switch {
	case c.shut:
		return "shut down"
	case from.Job != c.config.Job:
		return "of another job"
	default:
		return ""
	}
}

func (c *CheckpointCoordinator) acknowledged(now time.Time, ev Acknowledged) {
	if why := c.ignored(ev.Attempt); why != "" {
		c.note("%s: %s", why, ev)
		return
	}
	p := c.find(ev.Checkpoint)
	known := int64(0)
	if p == nil || !p.kind.IsSavepoint() {
		known = c.shared.Register(ev.Checkpoint, ev.State)
	}
	if p == nil {
		c.acknowledgedLate(now, ev)
		return
	}
	result := p.Acknowledge(now, ev.Attempt, ev.State, ev.Metrics)
	switch result {
	case AckSuccess:
		p.newBytes -= known
		if p.stage == atTasks && p.FullyAcknowledged() {
			c.writeMetadata(now, p)
		}
	case AckDuplicate:
		c.note("%s: %s", result, ev)
	case AckUnknown, AckDiscarded:
		c.note("%s: %s", result, ev)
		ev.State = p.keepStray(ev.Attempt, ev.State)
		c.discardLate(ev)
	}
}

// acknowledgedLate answers what comes for a checkpoint that is not pending.
func (c *CheckpointCoordinator) acknowledgedLate(now time.Time, ev Acknowledged) {
	for _, p := range c.disposed {
		if p.id == ev.Checkpoint && p.Acknowledge(now, ev.Attempt, ev.State, ev.Metrics) == AckDuplicate {
			c.note("%s: %s", AckDuplicate, ev)
			return
		}
	}
	c.history.late(now, ev)
	switch {
	case c.completed.holds(ev.Checkpoint) || c.history.isComplete(ev.Checkpoint):
		// Only a repeated message can come here. Its files are the checkpoint's.
		c.note("complete already: %s", ev)
		return
	case c.expired.has(ev.Checkpoint):
		c.note("expired: %s", ev)
	default:
		c.note("unknown: %s", ev)
	}
	c.discardLate(ev)
}

// discardLate discards state that came unasked. It does not hold back triggers. What
// lies in another place than a checkpoint's may belong to a savepoint that was complete
// before our time: it is left alone, unless we know that the snapshot failed.
func (c *CheckpointCoordinator) discardLate(ev Acknowledged) {
	if !hasFiles(ev.State) {
		return
	}
	if !c.history.hasFailed(ev.Checkpoint) && c.find(ev.Checkpoint) == nil && !liesIn(ev.State, fmt.Sprintf("chk-%d/", ev.Checkpoint)) {
		c.note("left alone, since it may be a savepoint's: %s", ev)
		return
	}
	c.lastCleanup++
	c.emit(DiscardState{Cleanup: c.lastCleanup, Checkpoint: ev.Checkpoint, States: []TaskState{{ev.Attempt, ev.State}}})
}

func (c *CheckpointCoordinator) declined(now time.Time, ev Declined) {
	if why := c.ignored(ev.Attempt); why != "" {
		c.note("%s: %s", why, ev)
		return
	}
	p := c.find(ev.Checkpoint)
	if p == nil {
		c.note("not pending: %s", ev)
		return
	}
	if _, takesPart := p.index.find(ev.Attempt); !takesPart {
		c.note("%s: %s", AckUnknown, ev)
		return
	}
	if p.stage == atLink {
		c.note("being linked: %s", ev)
		return
	}
	reason := ev.Reason
	if reason == weir.ReasonNone {
		reason = weir.CheckpointDeclined
	}
	x := failureOf(p, reason, ev.Attempt.SubtaskID().String()+": "+ev.Message)
	x.attempt = ev.Attempt
	c.abort(now, p, x)
}

// failureOf is the failure of a pending checkpoint that no task is to blame for.
func failureOf(p *PendingCheckpoint, reason weir.FailureReason, message string) checkpointFailure {
	return checkpointFailure{id: p.id, kind: p.kind, reason: reason, message: message}
}

// writeMetadata begins to finalise a checkpoint that nothing is missing of.
func (c *CheckpointCoordinator) writeMetadata(now time.Time, p *PendingCheckpoint) {
	if message := p.partlyFinishedUnion(); message != "" {
		c.abort(now, p, failureOf(p, weir.CheckpointDeclinedTaskClosing, message))
		return
	}
	p.stage = atMetadata
	c.emit(WriteMetadata{
		Checkpoint: p.id, Kind: p.kind, Location: p.location, Triggered: p.triggered, Completed: now,
		Tasks: p.states, Finished: p.plan.Finished, FullyFinished: p.plan.FullyFinished,
		Coordinators: p.coordinators, Hooks: p.hooks,
	})
}

func (c *CheckpointCoordinator) metadataWritten(now time.Time, ev MetadataWritten) {
	if p := c.takeDisposed(ev.Checkpoint, atMetadata); p != nil {
		c.delete(DeleteCheckpoint{Checkpoint: p.id, Kind: p.kind, Metadata: ev.Metadata})
		return
	}
	p := c.find(ev.Checkpoint)
	if p == nil || p.stage != atMetadata {
		c.note("not awaited: %s", ev)
		return
	}
	p.stage, p.metadata, p.bytes, p.timeline.Written = beforeLink, ev.Metadata, ev.Bytes, now
	if p.kind.IsSavepoint() && !p.kind.IsSynchronous() {
		c.savepointCompleted(now, p)
		return
	}
	c.linkNext(now)
}

func (c *CheckpointCoordinator) metadataFailed(now time.Time, ev MetadataFailed) {
	if p := c.takeDisposed(ev.Checkpoint, atMetadata); p != nil {
		c.discard(p, p.dispose())
		return
	}
	p := c.find(ev.Checkpoint)
	if p == nil || p.stage != atMetadata {
		c.note("not awaited: %s", ev)
		return
	}
	p.stage = atTasks // nothing is being written any more
	c.abort(now, p, failureOf(p, weir.FinalizeCheckpointFailure, "metadata: "+ev.Message))
}

// takeDisposed returns a checkpoint that was aborted at this stage, if its answer was
// awaited.
func (c *CheckpointCoordinator) takeDisposed(id weir.CheckpointID, at stage) *PendingCheckpoint {
	for i, p := range c.disposed {
		if p.id == id && p.stage == at {
			c.disposed = slices.Delete(c.disposed, i, i+1)
			return p
		}
	}
	return nil
}

// linkNext adds the link of the oldest checkpoint that is written, if none is being
// added: links are added in the order of ids as far as possible, one at a time.
func (c *CheckpointCoordinator) linkNext(now time.Time) {
	if c.linking != nil {
		return
	}
	for _, p := range c.pending {
		if p.stage != beforeLink {
			continue
		}
		p.stage, p.timeline.LinkBegan, c.linking = atLink, now, p
		c.cancelExpiry(p)
		c.emit(AddLink{Checkpoint: p.id, Kind: p.kind, Metadata: p.metadata, Bytes: p.bytes, At: now})
		return
	}
}

// settleLink notes that the end of the link being added is known.
func (c *CheckpointCoordinator) settleLink(id weir.CheckpointID, ev Event) bool {
	if c.linking == nil || c.linking.id != id {
		c.note("not awaited: %s", ev)
		return false
	}
	c.linking.stage = beforeLink
	c.linking = nil
	c.emit(LinkSettled{})
	return true
}

// linkAdded completes a checkpoint, or the savepoint of a stop (behaviour §6).
func (c *CheckpointCoordinator) linkAdded(now time.Time, ev LinkAdded) {
	if !c.settleLink(ev.Checkpoint, ev) {
		return
	}
	assert.That(ev.Permit != nil && ev.Permit.ID() == ev.Checkpoint, "link of %d was added without a permit for it", ev.Checkpoint)
	p := c.find(ev.Checkpoint)
	subsumed := c.completed.Add(CompletedCheckpoint{
		ID: p.id, Kind: p.kind, Metadata: p.metadata, Bytes: p.bytes, Completed: now, Owned: !p.kind.IsSavepoint(),
	})
	p.timeline.Linked, p.timeline.Notified = now, now
	c.succeeded(now, p)
	// Tasks hear of these first, and then of the completion, so that what they hear only
	// grows: the aborts still name the one completed before.
	for _, older := range slices.Clone(c.pending) {
		if older.id < p.id && !older.kind.IsSavepoint() {
			c.abort(now, older, failureOf(older, weir.CheckpointSubsumed, "a newer checkpoint is complete"))
		}
	}
	last := weir.NoCheckpoint
	for _, old := range subsumed {
		if old.Owned && !old.Foreign {
			last = max(last, old.ID)
		}
	}
	c.notified = p.id
	c.emit(NotifyComplete{Permit: ev.Permit, Tasks: p.plan.Wait, Subsumed: last})
	for _, old := range subsumed {
		if old.Owned || !old.Foreign {
			c.delete(DeleteCheckpoint{
				Checkpoint: old.ID, Kind: old.Kind, Metadata: old.Metadata,
				Linked: !old.Foreign, Foreign: old.Foreign, KeepFiles: !old.Owned,
			})
		}
	}
	if unused := c.shared.Unregister(c.completed.lowest()); len(unused) > 0 {
		c.lastCleanup++
		c.cleaning[c.lastCleanup] = struct{}{}
		c.emit(DeleteShared{Cleanup: c.lastCleanup, Files: unused})
	}
	c.linkNext(now)
}

// savepointCompleted completes a savepoint that is not of a stop: it has no link,
// nobody commits to it, and it subsumes nothing (behaviour §6).
func (c *CheckpointCoordinator) savepointCompleted(now time.Time, p *PendingCheckpoint) {
	c.cancelExpiry(p)
	c.succeeded(now, p)
}

// succeeded is what all complete snapshots have in common.
func (c *CheckpointCoordinator) succeeded(now time.Time, p *PendingCheckpoint) {
	c.remove(p)
	c.lastCompletion = now
	c.failures.succeeded(p.id)
	s := p.statistics(now)
	s.Status, s.Bytes, s.Metadata = Completed, p.bytes, p.metadata
	c.history.add(s)
	c.emit(CheckpointEnded{Statistics: s})
	if p.request != 0 {
		c.emit(RequestEnded{Request: p.request, Checkpoint: p.id, Metadata: p.metadata, Bytes: p.bytes})
	}
}

func (c *CheckpointCoordinator) linkFailed(now time.Time, ev LinkFailed) {
	if c.settleLink(ev.Checkpoint, ev) {
		p := c.find(ev.Checkpoint)
		c.abort(now, p, failureOf(p, weir.FinalizeCheckpointFailure, "link: "+ev.Message))
		c.linkNext(now)
	}
}

// abort ends a pending checkpoint, once (behaviour §5.5).
func (c *CheckpointCoordinator) abort(now time.Time, p *PendingCheckpoint, x checkpointFailure) {
	assert.That(!p.disposed && p.stage != atLink, "checkpoint %d cannot be aborted", p.id)
	assert.That(x.reason != weir.CheckpointSubsumed || !p.kind.IsSavepoint(), "savepoint %d cannot be subsumed", p.id)
	c.remove(p)
	if t := c.triggering; t != nil && t.checkpoint == p {
		c.triggering = nil
	}
	c.cancelExpiry(p)
	states := p.dispose()
	switch {
	case p.stage == atMetadata || p.stage == atLocation:
		c.disposed = append(c.disposed, p) // what to discard depends on the answer
	case p.stage == beforeLink:
		c.delete(DeleteCheckpoint{Checkpoint: p.id, Kind: p.kind, Metadata: p.metadata})
	default:
		c.discard(p, states)
	}
	s := p.statistics(now)
	s.Status, s.Reason, s.Message = Failed, x.reason, x.message
	c.history.add(s)
	c.emit(CheckpointEnded{Statistics: s})
	c.failed(x)
	if p.request != 0 {
		c.emit(RequestEnded{Request: p.request, Checkpoint: p.id, Reason: x.reason, Message: x.message})
	}
	c.emit(NotifyAborted{Checkpoint: p.id, Tasks: p.plan.Wait, LatestCompleted: c.notified})
}

// failed tells the failure counter. What that wants of the job comes last in the step.
func (c *CheckpointCoordinator) failed(x checkpointFailure) {
	alarm, fail := c.failures.failed(x)
	c.emit(alarm...)
	if fail != nil {
		c.failJob = fail
	}
}

func (c *CheckpointCoordinator) remove(p *PendingCheckpoint) {
	i := slices.Index(c.pending, p)
	assert.That(i >= 0, "checkpoint %d is not pending", p.id)
	c.pending = slices.Delete(c.pending, i, i+1)
	c.roomMade = true
}

// discard deletes the state of an aborted checkpoint. A savepoint's location goes too.
func (c *CheckpointCoordinator) discard(p *PendingCheckpoint, states []TaskState) {
	if len(states) == 0 && !p.kind.IsSavepoint() {
		return
	}
	c.lastCleanup++
	c.cleaning[c.lastCleanup] = struct{}{}
	c.emit(DiscardState{Cleanup: c.lastCleanup, Checkpoint: p.id, Kind: p.kind, Location: p.location, States: states})
}

// delete removes a snapshot with its metadata file.
func (c *CheckpointCoordinator) delete(d DeleteCheckpoint) {
	c.lastCleanup++
	d.Cleanup = c.lastCleanup
	c.cleaning[d.Cleanup] = struct{}{}
	c.emit(d)
}

// cancelExpiry takes the expiry timer back, if it is armed.
func (c *CheckpointCoordinator) cancelExpiry(p *PendingCheckpoint) {
	if p.expires {
		p.expires = false
		c.emit(CancelTimer{TimerKey{Kind: ExpiryTimer, Checkpoint: p.id}})
	}
}
