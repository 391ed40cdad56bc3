package barrier_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/taskmanager/barrier"
)

// TestEveryOrder walks every order in which three channels bring two checkpoints,
// barriers are announced and overtake, and the timer fires or does not.
func TestEveryOrder(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		mode  barrier.Mode
		off   bool
		lanes []string
		// triggered are checkpoints that every order triggers, never those that none does.
		triggered, never []weir.CheckpointID
		minOrders        int
	}{
		{"aligned", barrier.Aligned, false, []string{"d B1 d B2", "d B1 B2", "B1 d B2"}, ids(1, 2), nil, 900},
		{"aligned, one skips", barrier.Aligned, false, []string{"B1 d B2", "d B2", "B1 B2"}, ids(2), ids(1), 30},
		{"at least once", barrier.AtLeastOnce, false, []string{"L1 L2", "L1 L2", "L1 L2"}, ids(2), nil, 90},
		{"at least once, with data", barrier.AtLeastOnce, false, []string{"d L1 L2", "L1 d L2", "L1 L2"}, ids(2), nil, 200},
		{"at least once, one ends", barrier.AtLeastOnce, false, []string{"L1 L2", "L1 E", "L1 L2"}, ids(2), nil, 90},
		{"at least once, cancelled", barrier.AtLeastOnce, false, []string{"L1 L2", "C1 L2", "L1 L2"}, ids(2), ids(1), 90},
		{"at least once, ends abort", barrier.AtLeastOnce, true, []string{"L1 L2", "L1 E", "L1 L2"}, nil, nil, 90},
		{"unaligned", barrier.Alternating, false, []string{"U1 U2", "U1 U2", "U1 U2"}, ids(2), nil, 90},
		{"unaligned, with data", barrier.Alternating, false, []string{"d U1 U2", "d U1 U2", "U1 U2"}, ids(2), nil, 1000},
		{"unaligned, one ends", barrier.Alternating, false, []string{"d U1 U2", "d U1 E", "U1 U2"}, ids(2), nil, 500},
		{"unaligned, ends abort", barrier.Alternating, true, []string{"d U1 U2", "U1 E", "U1 U2"}, nil, nil, 90},
		{"unaligned, cancelled", barrier.Alternating, false, []string{"d U1 U2", "C1 U2", "U1 U2"}, ids(2), nil, 90},
		{"timed", barrier.Alternating, false, []string{"T1 S2", "T1 S2", "T1"}, nil, nil, 4608},
		{"timed, not announced", barrier.Alternating, false, []string{"S1 S2", "S1 S2", "S1 S2"}, ids(1, 2), nil, 324},
		{"timed, with data", barrier.Alternating, false, []string{"d T1 d", "d T1", "T1"}, ids(1), nil, 10000},
		{"timed, one ends", barrier.Alternating, false, []string{"d T1 T2", "d T1 E"}, nil, nil, 500},
		{"timed, one turned unaligned upstream", barrier.Alternating, false, []string{"d T1", "d U1", "T1 d"}, ids(1), nil, 1000},
		{"timed, cancelled", barrier.Alternating, false, []string{"d T1 T2", "C1 T2"}, ids(2), ids(1), 100},
		{"timed, then unaligned", barrier.Alternating, false, []string{"d T1 d U2", "T1 U2"}, ids(2), nil, 100},
		{"unaligned, then a savepoint", barrier.Alternating, false, []string{"d U1 B2 d", "d U1 B2", "U1 B2"}, ids(2), nil, 1000},
		{"a savepoint, then unaligned", barrier.Alternating, false, []string{"d B1 d U2", "B1 U2", "B1 U2"}, ids(1, 2), nil, 288},
		{"forced", barrier.Alternating, false, []string{"d F1 F2", "F1 d F2", "F1 F2"}, ids(1, 2), nil, 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			orders := 0
			visit(t, func() *world { return newWorld(t, tt.mode, tt.off, tt.lanes) }, nil, func(w *world) {
				orders++
				w.finish()
				for _, id := range tt.triggered {
					if !slices.Contains(w.triggered, id) || w.aborted[id] {
						w.fail("%d was not taken", id)
					}
				}
				for _, id := range tt.never {
					if slices.Contains(w.triggered, id) && !w.aborted[id] {
						w.fail("%d was taken", id)
					}
				}
			})
			if orders < tt.minOrders {
				t.Errorf("walked %d orders, want at least %d", orders, tt.minOrders)
			}
			t.Logf("%d orders", orders)
		})
	}
}

func ids(all ...weir.CheckpointID) []weir.CheckpointID { return all }

// visit plays the path in a new world and goes on with everything that can happen.
func visit(t *testing.T, build func() *world, path []choice, done func(w *world)) {
	w := build()
	for _, c := range path {
		w.do(c)
	}
	next := w.choices()
	if !w.left() {
		done(w)
		return
	}
	if len(next) == 0 || len(next) == 1 && next[0].what == 't' {
		w.fail("deadlock")
	}
	for _, c := range next {
		visit(t, build, append(slices.Clone(path), c), done)
	}
}

// TestLongLives plays random lives of up to four channels, which bring up to nine
// checkpoints of all kinds, and checks every cut.
func TestLongLives(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		mode := rapid.SampledFrom([]barrier.Mode{barrier.Aligned, barrier.AtLeastOnce, barrier.Alternating, barrier.Alternating}).Draw(rt, "mode")
		n := rapid.IntRange(1, 4).Draw(rt, "channels")
		last := rapid.IntRange(1, 9).Draw(rt, "checkpoints")
		kinds := map[barrier.Mode]string{barrier.Aligned: "B", barrier.AtLeastOnce: "L", barrier.Alternating: "BTTTUUF"}[mode]
		lanes, ends := make([]strings.Builder, n), make([]bool, n)
		for id := 1; id <= last; id++ {
			kind := rapid.SampledFrom([]byte(kinds)).Draw(rt, "kind")
			for ch := range lanes {
				lanes[ch].WriteString(strings.Repeat("d ", rapid.IntRange(0, 2).Draw(rt, "data")))
				b := kind
				switch rapid.IntRange(0, 19).Draw(rt, "odd") {
				case 0:
					b = 'C'
				case 1:
					ends[ch] = true // so that nobody waits for the barrier
					continue
				case 2, 3, 4:
					if kind == 'T' {
						b = 'U' // turned upstream
					}
				}
				lanes[ch].WriteString(string(b) + string(rune('0'+id)) + " ")
			}
		}
		texts := make([]string, n)
		for ch := range lanes {
			if ends[ch] || rapid.Bool().Draw(rt, "ends") {
				lanes[ch].WriteString("E")
			} else {
				lanes[ch].WriteString("d")
			}
			texts[ch] = lanes[ch].String()
		}
		w := newWorld(rt, mode, rapid.Bool().Draw(rt, "off"), texts)
		for w.left() {
			next := w.choices()
			if len(next) == 0 || len(next) == 1 && next[0].what == 't' {
				w.fail("deadlock of %q", texts)
			}
			w.do(rapid.SampledFrom(next).Draw(rt, "choice"))
		}
		w.finish()
	})
}
