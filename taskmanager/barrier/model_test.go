package barrier_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/taskmanager/barrier"
)

// model is a slow, obvious handler: it keeps the whole history and answers every
// question by reading it again, in sets.
type model struct {
	channels int
	off      bool
	history  []barrier.Event
}

// outcome is what a history amounts to.
type outcome struct {
	triggered []weir.CheckpointID
	aborted   map[weir.CheckpointID]weir.FailureReason
	blocked   []int
}

func (m *model) outcome() outcome {
	out := outcome{aborted: map[weir.CheckpointID]weir.FailureReason{}}
	var newest, pending weir.CheckpointID
	var missing, blocked map[int]bool // of the pending checkpoint
	open := map[int]bool{}
	for ch := range m.channels {
		open[ch] = true
	}
	finish := func() {
		if pending != 0 && len(missing) == 0 {
			out.triggered = append(out.triggered, pending)
			pending, blocked = 0, nil
		}
	}
	for _, ev := range m.history {
		switch ev := ev.(type) {
		case barrier.Barrier:
			id := ev.Barrier.ID
			if !open[ev.Channel] || id < newest || id == newest && pending == 0 {
				continue
			}
			if id > newest {
				if pending != 0 {
					out.aborted[pending] = weir.CheckpointDeclinedSubsumed
				}
				newest, pending = id, id
				missing, blocked = maps.Clone(open), map[int]bool{}
			}
			delete(missing, ev.Channel)
			blocked[ev.Channel] = true
			finish()
		case barrier.Cancellation:
			if ev.ID > newest || ev.ID == pending {
				newest = ev.ID
				out.aborted[ev.ID] = weir.CheckpointDeclinedOnCancellationBarrier
				pending, blocked = 0, nil
			}
		case barrier.EndOfPartition:
			delete(open, ev.Channel)
			if pending == 0 {
				continue
			}
			if m.off {
				out.aborted[pending] = weir.CheckpointDeclinedInputEndOfStream
				pending, blocked = 0, nil
				continue
			}
			delete(missing, ev.Channel)
			delete(blocked, ev.Channel)
			finish()
		case barrier.Announcement, barrier.Timer, barrier.GivenUp:
		}
	}
	out.blocked = slices.Sorted(maps.Keys(blocked))
	return out
}

// TestModel compares the handler with the model over random lives, in which
// channels deliver barriers in rising order, or skip them, cancel, repeat or end.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{channels: rapid.IntRange(1, 5).Draw(rt, "channels"), off: rapid.Bool().Draw(rt, "off")}
		p := newPlay(t, m.channels, m.off)
		next := make([]weir.CheckpointID, m.channels)
		// onChannel draws one of the channels that can deliver something.
		onChannel := func(rt *rapid.T, do func(ch int)) {
			var free []int
			for ch := range m.channels {
				if !p.ended[ch] && !p.blocked[ch] {
					free = append(free, ch)
				}
			}
			if len(free) > 0 {
				do(rapid.SampledFrom(free).Draw(rt, "ch"))
			}
		}
		step := func(rt *rapid.T, ev barrier.Event) {
			m.history = append(m.history, ev)
			p.step(ev)
			want := m.outcome()
			if !slices.Equal(p.triggered, want.triggered) || !maps.Equal(p.aborted, want.aborted) {
				rt.Fatalf("%v\ngot  triggered %v aborted %v\nwant triggered %v aborted %v", m.history, p.triggered, p.aborted, want.triggered, want.aborted)
			}
			if got := slices.Sorted(maps.Keys(p.blocked)); !slices.Equal(got, want.blocked) {
				rt.Fatalf("%v\ngot  blocked %v\nwant blocked %v", m.history, got, want.blocked)
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"barrier": func(rt *rapid.T) {
				onChannel(rt, func(ch int) {
					next[ch] += weir.CheckpointID(rapid.IntRange(0, 2).Draw(rt, "gap"))
					step(rt, b(ch, max(next[ch], 1)))
				})
			},
			"cancel": func(rt *rapid.T) {
				onChannel(rt, func(ch int) {
					next[ch]++
					step(rt, c(ch, next[ch]))
				})
			},
			"end": func(rt *rapid.T) {
				onChannel(rt, func(ch int) { step(rt, e(ch)) })
			},
		})
	})
}

// TestStatistics checks delay, duration and bytes of an alignment against the
// times at which its barriers came, in every order of three barriers whose ages
// differ because their hops lost some.
func TestStatistics(t *testing.T) {
	t.Parallel()
	ages := []time.Duration{30 * time.Millisecond, 45 * time.Millisecond, 70 * time.Millisecond}
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			h := barrier.New(barrier.Options{Channels: 3, AfterTasksFinish: true})
			start := time.Unix(100, 0)
			var born time.Time
			var last []barrier.Action
			for i, ch := range order {
				now := start.Add(time.Duration(i) * 10 * time.Millisecond)
				if at := now.Add(-ages[ch]); i == 0 || at.Before(born) {
					born = at
				}
				last = h.Step(now, barrier.Barrier{Channel: ch, Barrier: weir.Barrier{ID: 1, Age: ages[ch]}, Bytes: int64(1000 + 500*i)})
			}
			trigger, ok := last[0].(barrier.Trigger)
			if !ok {
				t.Fatalf("got %v, want a trigger", last)
			}
			want := barrier.Alignment{StartDelay: start.Sub(born), Duration: 20 * time.Millisecond, Bytes: 1000}
			if trigger.Stats != want {
				t.Errorf("got %+v, want %+v", trigger.Stats, want)
			}
			if age := start.Add(20 * time.Millisecond).Sub(born); trigger.Barrier.Age != age {
				t.Errorf("age %v, want %v", trigger.Barrier.Age, age)
			}
		})
	}
}
