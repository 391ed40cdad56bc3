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

// table is a slow, obvious handler of the mode Alternating: the table of behaviour
// §15.5 over sets of channels.
type table struct {
	off                              bool
	open, missing                    map[int]bool
	blocked, recorded, announced, in map[int]bool
	newest, pending                  weir.CheckpointID
	state                            string // "W", "C", "WU", "CU"
	options                          weir.CheckpointOptions
	born                             time.Time
	timer                            weir.CheckpointID
	said                             []string // triggers, aborts, moves
}

func newTable(channels int, off bool) *table {
	m := &table{off: off, open: map[int]bool{}}
	for ch := range channels {
		m.open[ch] = true
	}
	m.over()
	return m
}

// over ends whatever is pending.
func (m *table) over() {
	m.pending, m.timer, m.state = 0, 0, "W"
	m.missing, m.blocked, m.recorded, m.announced, m.in = map[int]bool{}, map[int]bool{}, map[int]bool{}, map[int]bool{}, map[int]bool{}
}

func (m *table) abort(id weir.CheckpointID, r weir.FailureReason) {
	m.said = append(m.said, fmt.Sprintf("abort %d %s", id, r))
	m.newest = id
	m.over()
}

func (m *table) begin(b weir.Barrier) {
	if m.pending != 0 {
		m.abort(m.pending, weir.CheckpointDeclinedSubsumed)
	}
	m.newest, m.pending, m.options = b.ID, b.ID, b.Options
	m.missing = maps.Clone(m.open)
	m.born = time.Time{}
}

func (m *table) timed() bool {
	return m.options.Alignment == weir.Aligned && m.options.Timeout > 0 && !m.options.Kind.IsSavepoint()
}

func (m *table) age(now time.Time, b weir.Barrier) {
	if at := now.Add(-b.Age); m.born.IsZero() || at.Before(m.born) {
		m.born = at
	}
}

func (m *table) trigger(a weir.Alignment, overtook bool) {
	m.said = append(m.said, fmt.Sprintf("trigger %d %s %t", m.pending, a, overtook))
}

// convert is "convert" of §15.5; x is the channel of the current barrier, or -1.
func (m *table) convert(x int) {
	m.trigger(weir.Unaligned, true)
	m.timer = 0
	for _, ch := range slices.Sorted(maps.Keys(m.announced)) {
		m.said = append(m.said, fmt.Sprintf("move %d ch%d", m.pending, ch))
	}
	m.announced = map[int]bool{}
	m.state = "CU"
	for ch := range m.open {
		if !m.in[ch] && ch != x {
			m.recorded[ch] = true
		}
	}
}

func (m *table) step(now time.Time, ev barrier.Event) {
	stale := func(id weir.CheckpointID) bool { return id < m.newest || id == m.newest && m.pending == 0 }
	switch ev := ev.(type) {
	case barrier.Barrier:
		b, ch := ev.Barrier, ev.Channel
		isUnaligned := b.Options.Alignment == weir.Unaligned
		if !m.open[ch] || stale(b.ID) {
			return
		}
		if b.ID == m.pending && m.in[ch] {
			if !isUnaligned && !ev.FromRPC {
				m.blocked[ch] = true // its sender stopped, whatever came before
			}
			return
		}
		if b.ID > m.newest {
			m.begin(b)
		}
		m.age(now, b)
		if b.Options.Alignment == weir.ForcedAligned && b.Options.Timeout == 0 {
			m.options = b.Options
		}
		m.in[ch] = true
		delete(m.missing, ch)
		delete(m.announced, ch)
		delete(m.recorded, ch)
		if !isUnaligned && !ev.FromRPC {
			m.blocked[ch] = true
		}
		all := len(m.missing) == 0
		late := m.timed() && m.options.Timeout < now.Sub(m.born)
		switch {
		case m.state == "CU":
		case m.state == "WU", isUnaligned, !all && late:
			m.convert(ch)
		case all:
			m.triggerAligned()
		default:
			m.state = "C"
			if m.timed() {
				m.timer = m.pending
			}
		}
		if all {
			m.over()
		}
	case barrier.Announcement:
		b, ch := ev.Barrier, ev.Channel
		if !m.open[ch] || stale(b.ID) || b.ID == m.pending && (m.in[ch] || m.announced[ch]) {
			return
		}
		if b.ID > m.newest {
			m.begin(b)
		}
		m.age(now, b)
		if m.state == "WU" || m.state == "CU" {
			m.said = append(m.said, fmt.Sprintf("move %d ch%d", b.ID, ch))
			return
		}
		m.announced[ch] = true
		if m.timed() {
			m.timer = m.pending
		}
	case barrier.Timer:
		if ev.ID != m.timer || m.timer == 0 {
			return
		}
		if m.state == "C" {
			m.convert(-1)
			return
		}
		m.state, m.timer = "WU", 0
		for _, ch := range slices.Sorted(maps.Keys(m.announced)) {
			m.said = append(m.said, fmt.Sprintf("move %d ch%d", m.pending, ch))
		}
		m.announced = map[int]bool{}
	case barrier.Cancellation:
		if !stale(ev.ID) {
			m.abort(ev.ID, weir.CheckpointDeclinedOnCancellationBarrier)
		}
	case barrier.GivenUp:
		if ev.ID == m.pending && m.pending != 0 {
			m.abort(ev.ID, ev.Reason)
		}
	case barrier.EndOfPartition:
		m.end(now, ev.Channel)
	}
}

func (m *table) triggerAligned() {
	a := weir.Aligned
	if m.options.Alignment == weir.ForcedAligned && m.options.Timeout == 0 {
		a = weir.Unaligned
	}
	m.trigger(a, false)
}

func (m *table) end(now time.Time, ch int) {
	if !m.open[ch] {
		return
	}
	delete(m.open, ch)
	delete(m.blocked, ch)
	if m.pending == 0 {
		return
	}
	if m.off {
		m.abort(m.pending, weir.CheckpointDeclinedInputEndOfStream)
		return
	}
	m.in[ch] = true
	delete(m.missing, ch)
	delete(m.announced, ch)
	delete(m.recorded, ch)
	all := len(m.missing) == 0
	switch {
	case m.state == "CU":
	case all && m.state == "WU":
		m.convert(-1)
	case all:
		m.triggerAligned()
	case m.state == "C" && m.timed() && m.options.Timeout < now.Sub(m.born):
		m.convert(-1)
	}
	if all {
		m.over()
	}
}

// TestTable compares the handler with the table over arbitrary events, also such as no
// channel brings.
func TestTable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(rt, "channels")
		off := rapid.IntRange(0, 3).Draw(rt, "off") == 0
		m := newTable(n, off)
		h := barrier.New(barrier.Options{Mode: barrier.Alternating, Channels: n, AfterTasksFinish: !off})
		now := time.Unix(1000, 0)
		var said []string
		armed := weir.CheckpointID(0)
		for range rapid.IntRange(1, 40).Draw(rt, "events") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3).Draw(rt, "pass")) * 20 * time.Millisecond)
			ev := anyEvent(rt, n, m.newest, armed)
			for _, a := range h.Step(now, ev) {
				switch a := a.(type) {
				case barrier.Trigger:
					said = append(said, fmt.Sprintf("trigger %d %s %t", a.Barrier.ID, a.Barrier.Options.Alignment, a.Stats.Overtook))
				case barrier.Abort:
					said = append(said, a.String())
				case barrier.ToHead:
					said = append(said, fmt.Sprintf("move %d ch%d", a.ID, a.Channel))
				case barrier.ArmTimer:
					armed = a.ID
				case barrier.CancelTimer:
					armed = 0
				default:
				}
			}
			if _, fired := ev.(barrier.Timer); fired && ev.(barrier.Timer).ID == armed {
				armed = 0
			}
			m.step(now, ev)
			// A trigger comes first of its list, before what ends an older checkpoint.
			if got, want := slices.Sorted(slices.Values(said)), slices.Sorted(slices.Values(m.said)); !slices.Equal(got, want) {
				rt.Fatalf("%s: got %q, want %q", ev, said, m.said)
			}
			for ch := range n {
				if h.Blocked(ch) != m.blocked[ch] || h.Recording(ch) != m.recorded[ch] {
					rt.Fatalf("%s: channel %d blocked %t, want %t; recording %t, want %t", ev, ch, h.Blocked(ch), m.blocked[ch], h.Recording(ch), m.recorded[ch])
				}
			}
			if h.Pending() != m.pending || armed != m.timer {
				rt.Fatalf("%s: pending %d, want %d; timer %d, want %d", ev, h.Pending(), m.pending, armed, m.timer)
			}
		}
	})
}

// anyEvent draws an event about a checkpoint near the newest.
func anyEvent(rt *rapid.T, channels int, newest, armed weir.CheckpointID) barrier.Event {
	ch := rapid.IntRange(0, channels-1).Draw(rt, "ch")
	id := max(1, newest+weir.CheckpointID(rapid.SampledFrom([]int{0, 0, 0, 0, 1, 1, -1, 2}).Draw(rt, "id")))
	b := weir.Barrier{ID: id, Age: time.Duration(rapid.IntRange(0, 6).Draw(rt, "age")) * 20 * time.Millisecond}
	switch rapid.IntRange(0, 5).Draw(rt, "kind") {
	case 0, 1, 2:
		b.Options.Timeout = 100 * time.Millisecond
	case 3:
		b.Options.Alignment = weir.Unaligned
	case 4:
		b.Options.Alignment = weir.ForcedAligned
		b.Options.Timeout = time.Duration(rapid.IntRange(0, 1).Draw(rt, "kept")) * time.Second
	case 5:
		b.Options.Kind = weir.Savepoint
	}
	switch rapid.IntRange(0, 19).Draw(rt, "event") {
	case 0:
		return barrier.Cancellation{Channel: ch, ID: id}
	case 1:
		return barrier.EndOfPartition{Channel: ch}
	case 2:
		return barrier.GivenUp{ID: id, Reason: weir.CheckpointSubsumed}
	case 3, 4:
		return barrier.Timer{ID: max(armed, 1)}
	case 5, 6, 7, 8:
		b.Options = weir.CheckpointOptions{Timeout: 100 * time.Millisecond}
		return barrier.Announcement{Channel: ch, Barrier: b}
	}
	return barrier.Barrier{Channel: ch, Barrier: b, FromRPC: rapid.IntRange(0, 9).Draw(rt, "rpc") == 0}
}

// ledger is a slow, obvious tracker: of every checkpoint it keeps which channels are
// missing, forever.
type ledger struct {
	off     bool
	open    map[int]bool
	newest  weir.CheckpointID
	missing map[weir.CheckpointID]map[int]bool // of those that are followed
	aborted map[weir.CheckpointID]weir.FailureReason
	taken   []weir.CheckpointID
}

func (m *ledger) ids() []weir.CheckpointID { return slices.Sorted(maps.Keys(m.missing)) }

// forget drops all checkpoints up to id.
func (m *ledger) forget(id weir.CheckpointID) {
	for _, x := range m.ids() {
		if x <= id {
			delete(m.missing, x)
		}
	}
}

func (m *ledger) report(id weir.CheckpointID, r weir.FailureReason) {
	if _, ok := m.aborted[id]; !ok {
		m.aborted[id] = r
	}
}

// signal counts a channel for a checkpoint.
func (m *ledger) signal(id weir.CheckpointID, ch int) (complete bool) {
	delete(m.missing[id], ch)
	if len(m.missing[id]) > 0 {
		return false
	}
	if _, ok := m.aborted[id]; !ok {
		m.taken = append(m.taken, id)
	}
	m.forget(id)
	return true
}

// follow begins a checkpoint that is new and says whether id is followed.
func (m *ledger) follow(id weir.CheckpointID) bool {
	if id > m.newest {
		m.newest = id
		m.missing[id] = maps.Clone(m.open)
	}
	if all := m.ids(); len(all) > 50 {
		delete(m.missing, all[0])
	}
	return m.missing[id] != nil
}

func (m *ledger) step(ev barrier.Event) {
	switch ev := ev.(type) {
	case barrier.Barrier:
		if m.open[ev.Channel] && m.follow(ev.Barrier.ID) {
			m.signal(ev.Barrier.ID, ev.Channel)
		}
	case barrier.Cancellation:
		if !m.open[ev.Channel] || !m.follow(ev.ID) {
			return
		}
		for _, id := range m.ids() {
			if id <= ev.ID {
				m.report(id, weir.CheckpointDeclinedOnCancellationBarrier)
			}
		}
		m.forget(ev.ID - 1)
		m.signal(ev.ID, ev.Channel)
	case barrier.GivenUp:
		if m.missing[ev.ID] != nil {
			m.report(ev.ID, ev.Reason)
		}
	case barrier.EndOfPartition:
		if !m.open[ev.Channel] {
			return
		}
		delete(m.open, ev.Channel)
		for _, id := range slices.Backward(m.ids()) {
			if m.off {
				m.report(id, weir.CheckpointDeclinedInputEndOfStream)
				delete(m.missing, id)
			} else if m.signal(id, ev.Channel) {
				return
			}
		}
	case barrier.Announcement, barrier.Timer:
	}
}

// TestLedger compares the tracker with the ledger.
func TestLedger(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(rt, "channels")
		m := &ledger{off: rapid.Bool().Draw(rt, "off"), open: map[int]bool{}, missing: map[weir.CheckpointID]map[int]bool{}, aborted: map[weir.CheckpointID]weir.FailureReason{}}
		for ch := range n {
			m.open[ch] = true
		}
		h := barrier.New(barrier.Options{Mode: barrier.AtLeastOnce, Channels: n, AfterTasksFinish: !m.off})
		var taken []weir.CheckpointID
		aborted := map[weir.CheckpointID]weir.FailureReason{}
		flood := rapid.IntRange(0, 9).Draw(rt, "flood") == 0 && n > 1
		for i := range rapid.IntRange(1, 80).Draw(rt, "events") {
			ev := anyEvent(rt, n, m.newest, 0)
			if flood && i < 60 {
				ev = barrier.Barrier{Barrier: weir.Barrier{ID: weir.CheckpointID(i + 1)}}
			}
			m.step(ev)
			for _, a := range h.Step(time.Unix(0, 0), ev) {
				switch a := a.(type) {
				case barrier.Trigger:
					taken = append(taken, a.Barrier.ID)
				case barrier.Abort:
					if _, ok := aborted[a.ID]; ok {
						rt.Fatalf("%s: %d aborted twice", ev, a.ID)
					}
					aborted[a.ID] = a.Reason
				case barrier.Resume, barrier.Note:
				default:
					rt.Fatalf("%s: %s", ev, a)
				}
			}
			if !slices.Equal(taken, m.taken) || !maps.Equal(aborted, m.aborted) {
				rt.Fatalf("%s: took %v, want %v; aborted %v, want %v", ev, taken, m.taken, aborted, m.aborted)
			}
		}
	})
}
