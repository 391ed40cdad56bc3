package barrier

import (
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/assert"
)

// maxTracked is how many checkpoints a tracker follows; the oldest gives way.
const maxTracked = 50

// tracker is the handler of the mode AtLeastOnce (behaviour §15.6). It follows several
// checkpoints at once and never blocks.
type tracker struct {
	afterTasksFinish bool
	ended            []bool // by channel
	open             int    // channels that have not ended
	// highest is the newest checkpoint heard of.
	highest weir.CheckpointID
	tracked []*tracked // ids grow
}

// tracked is a checkpoint of which signals are missing.
type tracked struct {
	id       weir.CheckpointID
	options  weir.CheckpointOptions
	target   int    // channels that were open when it was heard of
	seen     []bool // by channel: its signal came, or it ended
	count    int    // of those
	aborted  bool   // reported as such; it only counts what comes
	progress progress
}

func newTracker(o Options) *tracker {
	return &tracker{afterTasksFinish: o.AfterTasksFinish, ended: make([]bool, o.Channels), open: o.Channels}
}

func (t *tracker) pending() weir.CheckpointID {
	for _, c := range slices.Backward(t.tracked) {
		if !c.aborted {
			return c.id
		}
	}
	return weir.NoCheckpoint
}

func (t *tracker) blocked(int) bool   { return false }
func (t *tracker) recording(int) bool { return false }

func (t *tracker) step(now time.Time, ev Event) []Action {
	switch ev := ev.(type) {
	case Barrier:
		acts := t.onBarrier(now, ev)
		if stops(ev, AtLeastOnce) && !t.ended[ev.Channel] {
			acts = append(acts, Resume{ev.Channel})
		}
		return acts
	case Cancellation:
		return t.onCancellation(ev)
	case EndOfPartition:
		return t.onEnd(now, ev)
	case GivenUp:
		return t.onGivenUp(ev)
	case Announcement, Timer:
	}
	return note("%s: nothing is waited for", ev)
}

func (t *tracker) onBarrier(now time.Time, ev Barrier) []Action {
	id := ev.Barrier.ID
	i, known := t.find(id)
	switch {
	case t.ended[ev.Channel]:
		return note("barrier %d on the ended channel %d", id, ev.Channel)
	case !known && id <= t.highest:
		return note("old barrier %d on channel %d", id, ev.Channel)
	case known && t.tracked[i].seen[ev.Channel]:
		return note("second barrier %d on channel %d", id, ev.Channel)
	case !known:
		i = t.track(id, ev.Barrier.Options)
	}
	c := t.tracked[i]
	c.options = ev.Barrier.Options
	c.progress.heard(now, ev.Barrier.Age)
	c.progress.met(now, ev.Bytes)
	c.add(ev.Channel)
	if c.count < c.target {
		return note("barrier %d on channel %d, %d of %d channels have arrived", id, ev.Channel, c.count, c.target)
	}
	return t.complete(now, ev.Bytes, i)
}

func (t *tracker) find(id weir.CheckpointID) (int, bool) {
	return slices.BinarySearchFunc(t.tracked, id, func(c *tracked, id weir.CheckpointID) int { return int(c.id - id) })
}

// track begins to follow a checkpoint that is newer than all before.
func (t *tracker) track(id weir.CheckpointID, o weir.CheckpointOptions) int {
	t.highest = id
	if len(t.tracked) == maxTracked {
		t.tracked = slices.Delete(t.tracked, 0, 1)
	}
	t.tracked = append(t.tracked, &tracked{id: id, options: o, target: t.open, seen: make([]bool, len(t.ended))})
	return len(t.tracked) - 1
}

// add counts a channel, once.
func (c *tracked) add(ch int) {
	if !c.seen[ch] {
		c.seen[ch] = true
		c.count++
	}
}

// complete ends a checkpoint whose signals are all in, and drops older ones.
func (t *tracker) complete(now time.Time, bytes int64, i int) []Action {
	c := t.tracked[i]
	t.tracked = slices.Delete(t.tracked, 0, i+1)
	if c.aborted {
		return note("all has come of checkpoint %d, which was aborted", c.id)
	}
	return []Action{Trigger{
		Barrier: weir.Barrier{ID: c.id, Age: c.progress.age(now), Options: c.options},
		Stats:   c.progress.alignment(now, bytes),
	}}
}

// onCancellation gives up a checkpoint and all older ones.
func (t *tracker) onCancellation(ev Cancellation) []Action {
	i, known := t.find(ev.ID)
	switch {
	case t.ended[ev.Channel]:
		return note("cancellation of checkpoint %d on the ended channel %d", ev.ID, ev.Channel)
	case !known && ev.ID <= t.highest:
		return note("cancellation of checkpoint %d, which is over", ev.ID)
	case !known:
		t.track(ev.ID, weir.CheckpointOptions{})
		i = len(t.tracked) - 1
	}
	acts := t.abort(weir.CheckpointDeclinedOnCancellationBarrier, i+1)
	t.tracked = slices.Delete(t.tracked, 0, i)
	c := t.tracked[0]
	c.add(ev.Channel)
	if c.count >= c.target {
		t.tracked = slices.Delete(t.tracked, 0, 1)
	}
	if len(acts) == 0 {
		return note("second cancellation of checkpoint %d", ev.ID)
	}
	return acts
}

// abort reports the first n checkpoints, each once.
func (t *tracker) abort(reason weir.FailureReason, n int) (acts []Action) {
	for _, c := range t.tracked[:n] {
		if !c.aborted {
			c.aborted = true
			acts = append(acts, Abort{c.id, reason})
		}
	}
	return acts
}

func (t *tracker) onEnd(now time.Time, ev EndOfPartition) []Action {
	if t.ended[ev.Channel] {
		return note("channel %d ended twice", ev.Channel)
	}
	t.ended[ev.Channel] = true
	t.open--
	if !t.afterTasksFinish {
		acts := t.abort(weir.CheckpointDeclinedInputEndOfStream, len(t.tracked))
		t.tracked = nil
		return append(acts, Note{"a channel ended"})
	}
	for i, c := range slices.Backward(t.tracked) {
		c.add(ev.Channel)
		if c.count >= c.target {
			return t.complete(now, ev.Bytes, i)
		}
	}
	return note("channel %d ended, %d are open", ev.Channel, t.open)
}

// onGivenUp aborts a checkpoint that goes on counting what comes of it.
func (t *tracker) onGivenUp(ev GivenUp) []Action {
	i, known := t.find(ev.ID)
	if !known || t.tracked[i].aborted {
		return note("%s: it is not pending", ev)
	}
	t.tracked[i].aborted = true
	return []Action{Abort(ev)}
}

// check asserts what must hold between two steps.
func (t *tracker) check() {
	assert.That(len(t.tracked) <= maxTracked, "%d checkpoints are tracked", len(t.tracked))
	for i, c := range t.tracked {
		assert.That(c.id <= t.highest, "tracked %d is newer than %d", c.id, t.highest)
		assert.That(i == 0 || t.tracked[i-1].id < c.id, "%d is tracked after %d", c.id, t.tracked[max(0, i-1)].id)
		assert.That(c.count < c.target, "%d of %d channels have arrived at %d", c.count, c.target, c.id)
	}
}
