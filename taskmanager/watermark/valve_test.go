package watermark_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/taskmanager/watermark"
)

func TestMinimumOverChannelsIsPassedOn(t *testing.T) {
	t.Parallel()
	v := watermark.New(2)
	if c := v.Watermark(0, 10); c.Advanced {
		t.Errorf("advanced to %d with one channel silent", c.Watermark)
	}
	if c := v.Watermark(1, 7); !c.Advanced || c.Watermark != 7 {
		t.Errorf("got %+v, want 7", c)
	}
	if c := v.Watermark(1, 5); c != (watermark.Change{}) {
		t.Errorf("a watermark that goes back changed something: %+v", c)
	}
	if c := v.Watermark(1, 12); c.Watermark != 10 {
		t.Errorf("got %+v, want 10", c)
	}
}

func TestIdleChannelDoesNotHoldBack(t *testing.T) {
	t.Parallel()
	v := watermark.New(2)
	v.Watermark(0, 10)
	if c := v.Idle(1); c.Watermark != 10 || c.Toggled {
		t.Errorf("got %+v, want 10 and no change of status", c)
	}
	if c := v.Idle(0); !c.Toggled || !c.Idle || c.Advanced {
		t.Errorf("got %+v, want idle", c)
	}
	if c := v.Active(1); !c.Toggled || c.Idle {
		t.Errorf("got %+v, want active", c)
	}
	// Channel 1 woke behind 10: it counts again once it has caught up.
	if c := v.Watermark(1, 4); c.Advanced {
		t.Errorf("went back to %d", c.Watermark)
	}
	if c := v.Watermark(1, 11); c.Watermark != 11 {
		t.Errorf("got %+v, want 11", c)
	}
}

func TestLastActiveChannelReleasesTheLargestWatermark(t *testing.T) {
	t.Parallel()
	v := watermark.New(2)
	v.Watermark(0, 10)
	v.Watermark(1, 20)
	v.Idle(1)
	if c := v.Idle(0); !c.Advanced || c.Watermark != 20 || !c.Idle {
		t.Errorf("got %+v, want 20, then idle", c)
	}
}

func TestEndedChannelsNeitherHoldBackNorIdle(t *testing.T) {
	t.Parallel()
	v := watermark.New(2)
	v.Watermark(0, 10)
	if c := v.Ended(1); c.Watermark != 10 || c.Toggled {
		t.Errorf("got %+v, want 10", c)
	}
	if c := v.Ended(0); c != (watermark.Change{}) {
		t.Errorf("got %+v after the last end, want nothing", c)
	}
}

// TestValve checks the invariants over random lives.
func TestValve(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(rt, "channels")
		v := watermark.New(n)
		last, idle := weir.MinWatermark, false
		marks := make([]weir.Watermark, n)
		state := make([]string, n)
		for i := range marks {
			marks[i] = weir.MinWatermark
		}
		take := func(c watermark.Change) {
			if c.Advanced {
				if c.Watermark <= last {
					rt.Fatalf("went from %d to %d", last, c.Watermark)
				}
				last = c.Watermark
				for i := range marks {
					// Nobody who counts may be behind, but those who woke behind.
					if state[i] == "" && marks[i] < last {
						rt.Fatalf("channel %d at %d held nothing back: %d", i, marks[i], last)
					}
				}
			}
			if c.Toggled {
				if c.Idle == idle {
					rt.Fatalf("told twice that idle is %v", idle)
				}
				idle = c.Idle
			}
			if v.Current() != last {
				rt.Fatalf("current %d, passed on %d", v.Current(), last)
			}
		}
		ch := rapid.IntRange(0, n-1)
		rt.Repeat(map[string]func(*rapid.T){
			"watermark": func(rt *rapid.T) {
				i, w := ch.Draw(rt, "ch"), weir.Watermark(rapid.IntRange(0, 50).Draw(rt, "w"))
				if state[i] != "idle" && state[i] != "ended" && w > marks[i] {
					marks[i] = w
					if state[i] == "behind" && w >= last {
						state[i] = ""
					}
				}
				take(v.Watermark(i, w))
			},
			"idle": func(rt *rapid.T) {
				i := ch.Draw(rt, "ch")
				if state[i] != "ended" {
					state[i] = "idle"
				}
				take(v.Idle(i))
			},
			"active": func(rt *rapid.T) {
				i := ch.Draw(rt, "ch")
				if state[i] == "idle" {
					state[i] = ""
					if marks[i] < last {
						state[i] = "behind"
					}
				}
				take(v.Active(i))
			},
			"ended": func(rt *rapid.T) {
				i := ch.Draw(rt, "ch")
				state[i] = "ended"
				take(v.Ended(i))
			},
			"": func(rt *rapid.T) {
				open, active := 0, 0
				for i := range state {
					if state[i] != "ended" {
						open++
					}
					if state[i] == "" || state[i] == "behind" {
						active++
					}
				}
				if idle && active > 0 || open > 0 && active == 0 && !idle {
					rt.Fatalf("idle=%v with %d of %d open channels active", idle, active, open)
				}
			},
		})
	})
}
