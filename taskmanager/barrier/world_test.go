package barrier_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/taskmanager/barrier"
)

// world is a task with its channels: producers that stop behind blocking barriers,
// queues in which barriers overtake, a timer, and the consistent cut as the thing to
// check: what was processed at the trigger and what was captured is together exactly
// what was sent before the barriers.
type world struct {
	t     failer
	mode  barrier.Mode
	h     *barrier.Handler
	lanes []lane
	armed weir.CheckpointID // 0: no timer is
	path  []choice

	now       time.Time
	triggered []weir.CheckpointID
	snaps     map[weir.CheckpointID]*snap
	aborted   map[weir.CheckpointID]bool
}

// failer is a *testing.T or a *rapid.T.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// lane is a channel: what its producer sends, and how far it is.
type lane struct {
	elems   []elem
	done    int // elements before it are taken
	sent    int // elements before it have arrived
	stopped int // the barrier that the producer waits behind, or -1
}

type elem struct {
	barrier          *weir.Barrier // nil: data, unless end or cancel says otherwise
	cancel           weir.CheckpointID
	end              bool
	taken, announced bool
	moved            bool
}

// snap is what a checkpoint holds of each channel: positions of data.
type snap struct {
	whole     bool // nothing is missing any more
	processed [][]int
	captured  [][]int
}

// choice is one thing that can happen next.
type choice struct {
	what byte // 'n'ext element, 'j'ump of a barrier, 'a'nnouncement, 't'imer
	ch   int
}

func (c choice) String() string { return fmt.Sprintf("%c%d", c.what, c.ch) }

// parse reads a lane: "d" is data; "B1" a barrier that aligns, "T1" one that may time
// out, "U1" unaligned, "F1" forced to align, "L1" at least once, "C1" a marker, "E" the
// end.
func parse(text string) lane {
	l := lane{stopped: -1}
	for _, w := range slices.Collect(fields(text)) {
		var e elem
		id := weir.CheckpointID(0)
		if len(w) > 1 {
			id = weir.CheckpointID(w[1] - '0')
		}
		b := weir.Barrier{ID: id}
		switch w[0] {
		case 'T', 'S':
			b.Options.Timeout = time.Hour
			e.announced = w[0] == 'S'
		case 'U':
			b.Options.Alignment = weir.Unaligned
		case 'F':
			b.Options.Alignment = weir.ForcedAligned
		case 'L':
			b.Options.Alignment = weir.AtLeastOnce
		case 'C':
			e.cancel = id
		case 'E':
			e.end = true
		}
		if slices.Contains([]byte("BTSUFL"), w[0]) {
			e.barrier = &b
		}
		l.elems = append(l.elems, e)
	}
	l.send()
	return l
}

func fields(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		word := ""
		for _, r := range text + " " {
			if r != ' ' {
				word += string(r)
				continue
			}
			if word != "" && !yield(word) {
				return
			}
			word = ""
		}
	}
}

func (e *elem) blocks() bool {
	return e.barrier != nil && e.barrier.Options.Alignment != weir.Unaligned && e.barrier.Options.Alignment != weir.AtLeastOnce
}

func (e *elem) isData() bool { return e.barrier == nil && e.cancel == 0 && !e.end }

// send lets the producer go on to its next blocking barrier.
func (l *lane) send() {
	l.stopped = -1
	for l.sent < len(l.elems) {
		l.sent++
		if l.elems[l.sent-1].blocks() {
			l.stopped = l.sent - 1
			return
		}
	}
}

func newWorld(t failer, mode barrier.Mode, off bool, lanes []string) *world {
	w := &world{
		t: t, mode: mode, now: time.Unix(0, 0),
		h:     barrier.New(barrier.Options{Mode: mode, Channels: len(lanes), AfterTasksFinish: !off}),
		snaps: map[weir.CheckpointID]*snap{}, aborted: map[weir.CheckpointID]bool{},
	}
	for _, text := range lanes {
		w.lanes = append(w.lanes, parse(text))
	}
	return w
}

// choices are what can happen next; the timer is the last.
func (w *world) choices() (all []choice) {
	for ch := range w.lanes {
		l := &w.lanes[ch]
		if l.done < l.sent {
			all = append(all, choice{'n', ch})
		}
		if i := w.jumper(ch); i > l.done {
			all = append(all, choice{'j', ch})
		}
		if w.announcer(ch) >= 0 {
			all = append(all, choice{'a', ch})
		}
	}
	if w.armed != 0 {
		all = append(all, choice{'t', 0})
	}
	return all
}

// jumper is the first barrier in the queue that overtakes, or -1.
func (w *world) jumper(ch int) int {
	l := &w.lanes[ch]
	for i := l.done; i < l.sent; i++ {
		e := &l.elems[i]
		if !e.taken && e.barrier != nil && (e.moved || e.barrier.Options.Alignment == weir.Unaligned) {
			return i
		}
	}
	return -1
}

// announcer is the first barrier in the queue that is still to be announced, or -1.
func (w *world) announcer(ch int) int {
	l := &w.lanes[ch]
	for i := l.done; i < l.sent; i++ {
		e := &l.elems[i]
		if !e.taken && !e.announced && e.barrier != nil && e.barrier.Options.Timeout > 0 && w.mode == barrier.Alternating {
			return i
		}
	}
	return -1
}

func (w *world) do(c choice) {
	w.path = append(w.path, c)
	l := &w.lanes[c.ch]
	switch c.what {
	case 't':
		id := w.armed
		w.armed = 0
		w.step(-1, -1, barrier.Timer{ID: id})
	case 'a':
		e := &l.elems[w.announcer(c.ch)]
		e.announced = true
		w.step(c.ch, -1, barrier.Announcement{Channel: c.ch, Barrier: *e.barrier})
	case 'j':
		w.take(c.ch, w.jumper(c.ch))
	case 'n':
		w.take(c.ch, l.done)
	}
}

// take processes an element.
func (w *world) take(ch, i int) {
	l := &w.lanes[ch]
	e := &l.elems[i]
	e.taken = true
	for l.done < len(l.elems) && l.elems[l.done].taken {
		l.done++
	}
	switch {
	case e.barrier != nil:
		w.step(ch, i, barrier.Barrier{Channel: ch, Barrier: *e.barrier})
	case e.cancel != 0:
		w.step(ch, i, barrier.Cancellation{Channel: ch, ID: e.cancel})
	case e.end:
		w.step(ch, i, barrier.EndOfPartition{Channel: ch})
	case w.h.Recording(ch):
		w.capture(ch, i)
	}
}

// capture adds data to the checkpoint that was triggered last.
func (w *world) capture(ch, i int) {
	s := w.snaps[w.triggered[len(w.triggered)-1]]
	s.captured[ch] = append(s.captured[ch], i)
}

// step gives an event of element i of a channel to the handler.
func (w *world) step(ch, i int, ev barrier.Event) {
	acts := w.h.Step(w.now, ev)
	if len(acts) == 0 {
		w.fail("%s: no answer", ev)
	}
	for n, a := range acts {
		switch a := a.(type) {
		case barrier.Trigger:
			if n != 0 {
				w.fail("%s: trigger is action %d", ev, n)
			}
			w.trigger(ev, a)
		case barrier.Resume:
			l := &w.lanes[a.Channel]
			if l.stopped < 0 || !l.elems[l.stopped].taken {
				w.fail("%s: resume of channel %d, which waits behind no barrier", ev, a.Channel)
			}
			l.send()
		case barrier.StopRecording:
			if !a.Arrived {
				continue
			}
			if a.Channel != ch {
				w.fail("%s: a barrier of channel %d arrived", ev, a.Channel)
			}
			l := &w.lanes[ch]
			for j := l.done; j < i; j++ {
				if e := &l.elems[j]; !e.taken && e.isData() {
					w.capture(ch, j)
				}
			}
		case barrier.Recorded:
			if len(w.triggered) == 0 || w.triggered[len(w.triggered)-1] != a.ID || w.snaps[a.ID].whole {
				w.fail("%s: %s", ev, a)
			}
			w.snaps[a.ID].whole = true
		case barrier.ToHead:
			w.toHead(ev, a)
		case barrier.ArmTimer:
			if w.armed != 0 {
				w.fail("%s: a second timer is armed", ev)
			}
			w.armed = a.ID
		case barrier.CancelTimer:
			if w.armed != a.ID {
				w.fail("%s: timer %d is cancelled, armed is %d", ev, a.ID, w.armed)
			}
			w.armed = 0
		case barrier.Abort:
			if s := w.snaps[a.ID]; w.aborted[a.ID] || s != nil && s.whole {
				w.fail("%s: %d aborted after its end", ev, a.ID)
			}
			w.aborted[a.ID] = true
		case barrier.Block, barrier.Record, barrier.Note:
		}
	}
	if w.h.Pending() != weir.NoCheckpoint {
		return
	}
	for c := range w.lanes {
		if l := &w.lanes[c]; w.h.Blocked(c) || w.h.Recording(c) || l.stopped >= 0 && l.elems[l.stopped].taken && !w.ended(c) {
			w.fail("%s: nothing is pending and channel %d is blocked or recorded", ev, c)
		}
	}
	if w.armed != 0 {
		w.fail("%s: nothing is pending and a timer is armed", ev)
	}
}

func (w *world) ended(ch int) bool {
	l := &w.lanes[ch]
	return l.done == len(l.elems) && l.elems[l.done-1].end
}

func (w *world) trigger(ev barrier.Event, a barrier.Trigger) {
	id := a.Barrier.ID
	if n := len(w.triggered); n > 0 && w.triggered[n-1] >= id || w.aborted[id] {
		w.fail("%s: %d triggered after %v, aborted %v", ev, id, w.triggered, w.aborted)
	}
	w.triggered = append(w.triggered, id)
	s := &snap{whole: a.Barrier.Options.Alignment != weir.Unaligned, captured: make([][]int, len(w.lanes))}
	for ch := range w.lanes {
		var processed []int
		for i := range w.lanes[ch].elems {
			if e := &w.lanes[ch].elems[i]; e.taken && e.isData() {
				processed = append(processed, i)
			}
		}
		s.processed = append(s.processed, processed)
	}
	w.snaps[id] = s
}

func (w *world) toHead(ev barrier.Event, a barrier.ToHead) {
	l := &w.lanes[a.Channel]
	for i := l.done; i < l.sent; i++ {
		if e := &l.elems[i]; !e.taken && e.barrier != nil && e.barrier.ID == a.ID {
			e.moved = true
			return
		}
	}
	w.fail("%s: barrier %d is not in channel %d", ev, a.ID, a.Channel)
}

// finish checks the cuts of all checkpoints that were taken, once everything was
// processed. A tracker's are no cuts: it holds at least what is before the barriers.
func (w *world) finish() {
	for id, s := range w.snaps {
		if !s.whole || w.aborted[id] {
			continue
		}
		for ch := range w.lanes {
			held := slices.Sorted(slices.Values(append(slices.Clone(s.processed[ch]), s.captured[ch]...)))
			var want []int
			for i := range w.lanes[ch].elems {
				e := &w.lanes[ch].elems[i]
				if e.barrier != nil && e.barrier.ID >= id {
					break
				}
				if e.isData() {
					want = append(want, i)
				}
			}
			if w.mode == barrier.AtLeastOnce {
				held = held[:min(len(held), len(want))]
			}
			if !slices.Equal(held, want) {
				w.fail("checkpoint %d of channel %d: processed %v and captured %v, want %v", id, ch, s.processed[ch], s.captured[ch], want)
			}
		}
	}
}

func (w *world) left() bool {
	for ch := range w.lanes {
		if l := &w.lanes[ch]; l.done < len(l.elems) {
			return true
		}
	}
	return false
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%v: %s", w.path, fmt.Sprintf(format, args...))
}
