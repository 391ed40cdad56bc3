package opcoord

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/weirflow/weir"
)

// given is the model's memory of one event that was accepted.
type given struct {
	text  byte
	after weir.CheckpointID // the newest checkpoint whose gate was closed at its subtask
}

// model is what the outside knows.
type model struct {
	h        *Holder
	attempts []int32 // number of the running attempt of each subtask
	accepted [][]given
	next     byte
	token    Token
	id       weir.CheckpointID
	live     map[weir.CheckpointID]string // requested, taken, reported
	closed   []map[weir.CheckpointID]bool // by subtask
	flying   map[uint64]weir.AttemptID    // sent and not confirmed
	awaits   map[weir.CheckpointID]map[uint64]bool
	broken   map[weir.CheckpointID]bool // a subtask restarted before the snapshot was taken
}

func newModel(parallelism int32) *model {
	m := &model{
		h: running(parallelism), accepted: make([][]given, parallelism), live: map[weir.CheckpointID]string{},
		flying: map[uint64]weir.AttemptID{}, awaits: map[weir.CheckpointID]map[uint64]bool{}, broken: map[weir.CheckpointID]bool{},
	}
	for range parallelism {
		m.attempts = append(m.attempts, 1)
		m.closed = append(m.closed, map[weir.CheckpointID]bool{})
	}
	return m
}

func (m *model) attempt(s int32) weir.AttemptID {
	return weir.AttemptID{Subtask: s, Epoch: 5, N: m.attempts[s]}
}

// step feeds the holder and holds its actions against the model.
func (m *model) step(t *rapid.T, ev Event) {
	for _, a := range m.h.Step(ev) {
		switch a := a.(type) {
		case Send:
			s := a.Attempt.Subtask
			if a.Attempt != m.attempt(s) {
				t.Fatalf("%s after %s: attempt %d runs", a, ev, m.attempts[s])
			}
			if len(m.accepted[s]) == 0 || m.accepted[s][0].text != a.Event[0] {
				t.Fatalf("%s after %s: not the next event of the subtask", a, ev)
			}
			if first := m.accepted[s][0]; m.closed[s][first.after] {
				t.Fatalf("%s after %s: checkpoint %d holds it", a, ev, first.after)
			}
			m.accepted[s] = m.accepted[s][1:]
			m.flying[a.Seq] = a.Attempt
		case Snapshotted:
			if m.live[a.Checkpoint] != "taken" || len(m.awaits[a.Checkpoint]) != 0 {
				t.Fatalf("%s after %s: it is %q and waits for %v", a, ev, m.live[a.Checkpoint], m.awaits[a.Checkpoint])
			}
			m.live[a.Checkpoint] = "reported"
		case SnapshotFailed:
			if m.live[a.Checkpoint] == "reported" {
				t.Fatalf("%s after %s: reported before", a, ev)
			}
			m.live[a.Checkpoint] = "reported"
		}
	}
}

func TestEventsAreOnOneSideOfACheckpoint(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		parallelism := rapid.Int32Range(1, 3).Draw(t, "parallelism")
		m := newModel(parallelism)
		subtask := func(t *rapid.T) int32 { return rapid.Int32Range(0, parallelism-1).Draw(t, "subtask") }
		known := func(t *rapid.T) weir.CheckpointID {
			return weir.CheckpointID(rapid.Int64Range(1, int64(m.id)+1).Draw(t, "id"))
		}
		t.Repeat(map[string]func(*rapid.T){
			"give": func(t *rapid.T) {
				s := subtask(t)
				m.next++
				m.token++
				g := given{text: m.next}
				for id, closed := range m.closed[s] {
					if closed {
						g.after = max(g.after, id)
					}
				}
				m.accepted[s] = append(m.accepted[s], g)
				m.step(t, EventGiven{m.token, s, []byte{m.next}})
			},
			"confirm": func(t *rapid.T) {
				seq := rapid.Uint64Range(1, m.h.lastSeq+1).Draw(t, "seq")
				to, ok := m.flying[seq]
				if !ok {
					to = m.attempt(0)
				}
				delete(m.flying, seq)
				for _, awaits := range m.awaits {
					delete(awaits, seq)
				}
				m.step(t, EventConfirmed{Attempt: to, Seq: seq})
			},
			"request": func(t *rapid.T) {
				m.id++
				m.live[m.id] = "requested"
				m.step(t, CheckpointRequested{m.id})
			},
			"taken": func(t *rapid.T) {
				id := known(t)
				if m.live[id] == "requested" {
					m.live[id] = "taken"
					m.awaits[id] = map[uint64]bool{}
					for seq, a := range m.flying {
						if a == m.attempt(a.Subtask) {
							m.awaits[id][seq] = true
						}
					}
					for s := range m.closed {
						m.closed[s][id] = !m.broken[id]
					}
				}
				m.step(t, SnapshotTaken{id, []byte("s")})
				if m.broken[id] && m.live[id] != "reported" {
					t.Fatalf("snapshot %d of a broken checkpoint did not fail", id)
				}
			},
			"barrier": func(t *rapid.T) {
				s, id := subtask(t), known(t)
				if m.live[id] == "requested" {
					return // no barrier before the coordinator's snapshot
				}
				delete(m.closed[s], id)
				m.step(t, BarrierSent{m.attempt(s), id})
			},
			"end": func(t *rapid.T) {
				id := known(t)
				if rapid.Bool().Draw(t, "last") {
					id = m.id
				}
				if id > m.id {
					return
				}
				for s := range m.closed {
					delete(m.closed[s], id)
				}
				m.live[id] = "reported"
				m.step(t, CheckpointAborted{id})
			},
			"restart": func(t *rapid.T) {
				s := subtask(t)
				m.accepted[s] = nil // what was held is dropped
				for id, state := range m.live {
					m.broken[id] = m.broken[id] || state == "requested"
				}
				m.closed[s] = map[weir.CheckpointID]bool{}
				m.step(t, SubtaskEnded{m.attempt(s)})
				m.attempts[s]++
				m.step(t, SubtaskRunning{m.attempt(s)})
			},
			"": func(t *rapid.T) {
				held := 0
				for s := range m.accepted {
					closed := false
					for _, c := range m.closed[s] {
						closed = closed || c
					}
					if !closed && len(m.accepted[s]) > 0 {
						t.Fatalf("subtask %d has no closed checkpoint, but events are held", s)
					}
					held += len(m.accepted[s])
				}
				if m.h.held != held {
					t.Fatalf("holds %d bytes, want %d", m.h.held, held)
				}
			},
		})
	})
}

func TestHeldEventsAreBounded(t *testing.T) {
	t.Parallel()
	h := running(1)
	h.Step(CheckpointRequested{1})
	h.Step(SnapshotTaken{1, nil})
	event := make([]byte, maxHeldBytes/2)
	for i := range 2 {
		if _, ok := h.Step(EventGiven{1, 0, event})[0].(EventAccepted); !ok {
			t.Fatalf("event %d was not accepted", i)
		}
	}
	if _, ok := h.Step(EventGiven{3, 0, event})[0].(EventRefused); !ok {
		t.Fatal("an event over the bound was not refused")
	}
	h.Step(CheckpointCompleted{1})
	if out := h.Step(EventGiven{4, 0, event}); len(out) != 2 {
		t.Fatalf("an event through the open gate: %v", out)
	}
}
