package checkpointing

import (
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/assert"
)

// ignored says that a task's message has no effect at all.
func (c *CheckpointCoordinator) ignored(from weir.AttemptID, ev Event) bool {
	switch {
	case c.shut:
		c.note("shut down: %s", ev)
	case from.Job != c.config.Job:
		c.note("of another job: %s", ev)
	default:
		return false
	}
	return true
}

func (c *CheckpointCoordinator) acknowledged(now time.Time, ev Acknowledged) {
	if c.ignored(ev.Attempt, ev) {
		return
	}
	p := c.find(ev.Checkpoint)
	if p == nil {
		c.acknowledgedLate(now, ev)
		return
	}
	result := p.Acknowledge(now, ev.Attempt, ev.State, ev.Metrics)
	switch result {
	case AckSuccess:
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
	switch {
	case c.completed.owns(ev.Checkpoint):
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

// discardLate discards state that came unasked. It does not hold back triggers.
func (c *CheckpointCoordinator) discardLate(ev Acknowledged) {
	if hasFiles(ev.State) {
		c.lastCleanup++
		c.emit(DiscardState{Cleanup: c.lastCleanup, Checkpoint: ev.Checkpoint, States: []TaskState{{ev.Attempt, ev.State}}})
	}
}

func (c *CheckpointCoordinator) declined(now time.Time, ev Declined) {
	if c.ignored(ev.Attempt, ev) {
		return
	}
	p := c.find(ev.Checkpoint)
	if p == nil {
		c.note("not pending: %s", ev)
		return
	}
	if _, takesPart := p.index[ev.Attempt]; !takesPart {
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
	c.abort(now, p, reason, ev.Attempt.SubtaskID().String()+": "+ev.Message)
}

func (c *CheckpointCoordinator) writeMetadata(now time.Time, p *PendingCheckpoint) {
	p.stage = atMetadata
	c.emit(WriteMetadata{
		Checkpoint: p.id, Kind: p.kind, Triggered: p.triggered, Completed: now,
		Tasks: p.states, Finished: p.plan.Finished, FullyFinished: p.plan.FullyFinished, Coordinators: p.coordinators,
	})
}

func (c *CheckpointCoordinator) metadataWritten(now time.Time, ev MetadataWritten) {
	if p := c.takeDisposed(ev.Checkpoint); p != nil {
		c.delete(p.id, ev.Metadata, unlinked)
		return
	}
	p := c.find(ev.Checkpoint)
	if p == nil || p.stage != atMetadata {
		c.note("not awaited: %s", ev)
		return
	}
	p.stage, p.metadata, p.bytes = beforeLink, ev.Metadata, ev.Bytes
	c.linkNext(now)
}

func (c *CheckpointCoordinator) metadataFailed(now time.Time, ev MetadataFailed) {
	if p := c.takeDisposed(ev.Checkpoint); p != nil {
		c.discard(p.id, p.dispose())
		return
	}
	p := c.find(ev.Checkpoint)
	if p == nil || p.stage != atMetadata {
		c.note("not awaited: %s", ev)
		return
	}
	p.stage = atTasks // nothing is being written any more
	c.abort(now, p, weir.FinalizeCheckpointFailure, "metadata: "+ev.Message)
}

// takeDisposed returns an aborted checkpoint whose metadata was being written.
func (c *CheckpointCoordinator) takeDisposed(id weir.CheckpointID) *PendingCheckpoint {
	for i, p := range c.disposed {
		if p.id == id {
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
		p.stage, c.linking = atLink, p
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

// linkAdded completes a checkpoint (behaviour §6).
func (c *CheckpointCoordinator) linkAdded(now time.Time, ev LinkAdded) {
	if !c.settleLink(ev.Checkpoint, ev) {
		return
	}
	assert.That(ev.Permit != nil && ev.Permit.ID() == ev.Checkpoint, "link of %d was added without a permit for it", ev.Checkpoint)
	p := c.find(ev.Checkpoint)
	c.remove(p)
	subsumed := c.completed.Add(CompletedCheckpoint{
		ID: p.id, Kind: p.kind, Metadata: p.metadata, Bytes: p.bytes, Completed: now, Owned: true,
	})
	c.lastCompletion = now
	c.failures.succeeded()
	s := p.statistics(now)
	s.Status, s.Bytes, s.Metadata = Completed, p.bytes, p.metadata
	c.history.add(s)
	c.emit(CheckpointEnded{Statistics: s})
	if p.request != 0 {
		c.emit(RequestEnded{Request: p.request, Checkpoint: p.id})
	}
	for _, older := range slices.Clone(c.pending) {
		if older.id < p.id && !older.kind.IsSavepoint() {
			c.abort(now, older, weir.CheckpointSubsumed, "a newer checkpoint is complete")
		}
	}
	last := weir.NoCheckpoint
	for _, old := range subsumed {
		if old.Owned {
			last = max(last, old.ID)
		}
	}
	c.emit(NotifyComplete{Permit: ev.Permit, Tasks: p.plan.Wait, Subsumed: last})
	for _, old := range subsumed {
		if old.Owned {
			c.delete(old.ID, old.Metadata, linked)
		}
	}
	c.linkNext(now)
}

func (c *CheckpointCoordinator) linkFailed(now time.Time, ev LinkFailed) {
	if c.settleLink(ev.Checkpoint, ev) {
		c.abort(now, c.find(ev.Checkpoint), weir.FinalizeCheckpointFailure, "link: "+ev.Message)
		c.linkNext(now)
	}
}

// abort ends a pending checkpoint, once (behaviour §5.5).
func (c *CheckpointCoordinator) abort(now time.Time, p *PendingCheckpoint, reason weir.FailureReason, message string) {
	assert.That(!p.disposed && p.stage != atLink, "checkpoint %d cannot be aborted", p.id)
	c.remove(p)
	if t := c.triggering; t != nil && t.checkpoint == p {
		c.triggering = nil
	}
	c.cancelExpiry(p)
	states := p.dispose()
	switch {
	case p.stage == atMetadata:
		c.disposed = append(c.disposed, p) // what to discard depends on the answer
	case p.stage == beforeLink:
		c.delete(p.id, p.metadata, unlinked)
	default:
		c.discard(p.id, states)
	}
	s := p.statistics(now)
	s.Status, s.Reason, s.Message = Failed, reason, message
	c.history.add(s)
	c.emit(CheckpointEnded{Statistics: s})
	c.emit(c.failures.failed(p.id, reason, message)...)
	if p.request != 0 {
		c.emit(RequestEnded{Request: p.request, Checkpoint: p.id, Reason: reason, Message: message})
	}
	c.emit(NotifyAborted{Checkpoint: p.id, Tasks: p.plan.Wait, LatestCompleted: c.completed.latestOwned()})
}

func (c *CheckpointCoordinator) remove(p *PendingCheckpoint) {
	i := slices.Index(c.pending, p)
	assert.That(i >= 0, "checkpoint %d is not pending", p.id)
	c.pending = slices.Delete(c.pending, i, i+1)
	c.roomMade = true
}

// discard deletes the state of an aborted checkpoint.
func (c *CheckpointCoordinator) discard(id weir.CheckpointID, states []TaskState) {
	if len(states) == 0 {
		return
	}
	c.lastCleanup++
	c.cleaning[c.lastCleanup] = struct{}{}
	c.emit(DiscardState{Cleanup: c.lastCleanup, Checkpoint: id, States: states})
}

// Whether a snapshot that is deleted has a link.
const (
	unlinked = false
	linked   = true
)

// delete removes a snapshot with its metadata file.
func (c *CheckpointCoordinator) delete(id weir.CheckpointID, metadata string, hasLink bool) {
	c.lastCleanup++
	c.cleaning[c.lastCleanup] = struct{}{}
	c.emit(DeleteCheckpoint{Cleanup: c.lastCleanup, Checkpoint: id, Metadata: metadata, Linked: hasLink})
}

// cancelExpiry takes the expiry timer back, if it is armed.
func (c *CheckpointCoordinator) cancelExpiry(p *PendingCheckpoint) {
	if p.expires {
		p.expires = false
		c.emit(CancelTimer{TimerKey{Kind: ExpiryTimer, Checkpoint: p.id}})
	}
}
