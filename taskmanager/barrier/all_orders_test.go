package barrier_test

import (
	"slices"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/taskmanager/barrier"
)

func b(ch int, id weir.CheckpointID) barrier.Event {
	return barrier.Barrier{Channel: ch, Barrier: weir.Barrier{ID: id}}
}
func c(ch int, id weir.CheckpointID) barrier.Event { return barrier.Cancellation{Channel: ch, ID: id} }
func e(ch int) barrier.Event                       { return barrier.EndOfPartition{Channel: ch} }

// TestAllOrders walks every order in which channels can deliver what they hold,
// where a blocked channel delivers nothing, and checks how each checkpoint ends.
func TestAllOrders(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		off      bool // ended channels do not count
		channels [][]barrier.Event
		// triggered holds the checkpoints that every order triggers, never those
		// that none does; others may end either way.
		triggered, never []weir.CheckpointID
		minOrders        int
	}{
		{
			name:      "three channels, two checkpoints",
			channels:  [][]barrier.Event{{b(0, 1), b(0, 2)}, {b(1, 1), b(1, 2)}, {b(2, 1), b(2, 2)}},
			triggered: []weir.CheckpointID{1, 2},
			minOrders: 36, // 3! orders of the first times 3! of the second
		},
		{
			name:      "then all end",
			channels:  [][]barrier.Event{{b(0, 1), b(0, 2), e(0)}, {b(1, 1), b(1, 2), e(1)}, {b(2, 1), b(2, 2), e(2)}},
			triggered: []weir.CheckpointID{1, 2},
			minOrders: 216,
		},
		{
			name:      "one channel ends instead of its second barrier",
			channels:  [][]barrier.Event{{b(0, 1), b(0, 2)}, {b(1, 1), b(1, 2)}, {b(2, 1), e(2)}},
			triggered: []weir.CheckpointID{1, 2},
			minOrders: 36,
		},
		{
			name:      "one channel ends early and ended channels do not count",
			off:       true,
			channels:  [][]barrier.Event{{b(0, 1), b(0, 2)}, {b(1, 1), b(1, 2)}, {b(2, 1), e(2)}},
			triggered: []weir.CheckpointID{1},
			minOrders: 36,
		},
		{
			name:      "one channel skips the first checkpoint",
			channels:  [][]barrier.Event{{b(0, 1), b(0, 2)}, {b(1, 2)}, {b(2, 1), b(2, 2)}},
			triggered: []weir.CheckpointID{2},
			never:     []weir.CheckpointID{1},
			minOrders: 10,
		},
		{
			name:      "one channel cancels the first checkpoint",
			channels:  [][]barrier.Event{{b(0, 1), b(0, 2)}, {c(1, 1), b(1, 2)}, {b(2, 1), b(2, 2)}},
			triggered: []weir.CheckpointID{2},
			never:     []weir.CheckpointID{1},
			minOrders: 36,
		},
		{
			name:      "one channel cancels the second checkpoint",
			channels:  [][]barrier.Event{{b(0, 1), b(0, 2)}, {b(1, 1), c(1, 2)}, {b(2, 1), b(2, 2)}},
			triggered: []weir.CheckpointID{1},
			never:     []weir.CheckpointID{2},
			minOrders: 36,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := &walker{t: t, channels: tt.channels, off: tt.off}
			w.check = func(order []int, p *play) {
				for _, id := range tt.triggered {
					if !slices.Contains(p.triggered, id) {
						t.Fatalf("order %v: checkpoint %d was not triggered", order, id)
					}
				}
				for _, id := range tt.never {
					if slices.Contains(p.triggered, id) {
						t.Fatalf("order %v: checkpoint %d was triggered", order, id)
					}
				}
			}
			w.walk(nil)
			if w.orders < tt.minOrders {
				t.Errorf("walked %d orders, want at least %d", w.orders, tt.minOrders)
			}
			t.Logf("%d orders", w.orders)
		})
	}
}

type walker struct {
	t        *testing.T
	channels [][]barrier.Event
	off      bool
	orders   int
	check    func(order []int, p *play)
}

// walk plays the prefix and goes on with every channel that can deliver.
func (w *walker) walk(prefix []int) {
	p := newPlay(w.t, len(w.channels), w.off)
	next := make([]int, len(w.channels))
	for _, ch := range prefix {
		p.step(w.channels[ch][next[ch]])
		next[ch]++
	}
	left, stuck := false, true
	for ch, events := range w.channels {
		if next[ch] == len(events) {
			continue
		}
		left = true
		if p.blocked[ch] {
			continue
		}
		stuck = false
		w.walk(append(slices.Clone(prefix), ch))
	}
	switch {
	case !left:
		w.orders++
		w.check(prefix, p)
	case stuck:
		w.t.Fatalf("deadlock after %v", prefix)
	}
}

// play carries out a handler's actions and checks its invariants at each step.
type play struct {
	t         *testing.T
	h         *barrier.Handler
	blocked   map[int]bool
	barriers  map[int]int // barriers that came on a channel and were not resumed
	ended     map[int]bool
	triggered []weir.CheckpointID
	aborted   map[weir.CheckpointID]weir.FailureReason
}

func newPlay(t *testing.T, channels int, off bool) *play {
	return &play{
		t:       t,
		h:       barrier.New(barrier.Options{Channels: channels, AfterTasksFinish: !off}),
		blocked: map[int]bool{}, barriers: map[int]int{}, ended: map[int]bool{},
		aborted: map[weir.CheckpointID]weir.FailureReason{},
	}
}

func (p *play) step(ev barrier.Event) {
	p.t.Helper()
	switch ev := ev.(type) {
	case barrier.Barrier:
		p.barriers[ev.Channel]++
	case barrier.EndOfPartition:
		p.ended[ev.Channel] = true
		delete(p.blocked, ev.Channel)
		delete(p.barriers, ev.Channel)
	case barrier.Cancellation, barrier.Announcement, barrier.Timer, barrier.GivenUp:
	}
	acts := p.h.Step(time.Unix(0, 0), ev)
	if len(acts) == 0 {
		p.t.Fatalf("%s: no answer", ev)
	}
	for i, a := range acts {
		p.act(ev, i, a)
	}
	if p.h.Pending() != weir.NoCheckpoint {
		return
	}
	for ch := range p.blocked {
		p.t.Fatalf("%s: nothing is pending and channel %d is blocked", ev, ch)
	}
	for ch, n := range p.barriers {
		if n != 0 {
			p.t.Fatalf("%s: nothing is pending and %d barriers of channel %d were not resumed", ev, n, ch)
		}
	}
}

func (p *play) act(ev barrier.Event, i int, a barrier.Action) {
	p.t.Helper()
	switch a := a.(type) {
	case barrier.Trigger:
		id := a.Barrier.ID
		if i != 0 {
			p.t.Fatalf("%s: trigger is action %d", ev, i)
		}
		if n := len(p.triggered); n > 0 && p.triggered[n-1] >= id {
			p.t.Fatalf("%s: %d triggered after %d", ev, id, p.triggered[n-1])
		}
		if _, ok := p.aborted[id]; ok {
			p.t.Fatalf("%s: %d triggered after its abort", ev, id)
		}
		p.triggered = append(p.triggered, id)
	case barrier.Block:
		if p.blocked[a.Channel] {
			p.t.Fatalf("%s: channel %d blocked twice", ev, a.Channel)
		}
		p.blocked[a.Channel] = true
	case barrier.Resume:
		if p.ended[a.Channel] || p.barriers[a.Channel] == 0 {
			p.t.Fatalf("%s: channel %d resumed without a barrier", ev, a.Channel)
		}
		p.barriers[a.Channel]--
		delete(p.blocked, a.Channel)
	case barrier.Abort:
		if _, ok := p.aborted[a.ID]; ok || slices.Contains(p.triggered, a.ID) {
			p.t.Fatalf("%s: %d aborted after its end", ev, a.ID)
		}
		p.aborted[a.ID] = a.Reason
	case barrier.Note:
	case barrier.Record, barrier.StopRecording, barrier.Recorded, barrier.ToHead, barrier.ArmTimer, barrier.CancelTimer:
		p.t.Fatalf("%s: %s", ev, a)
	}
}
