package resource

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/weirflow/weir"
)

// member is one registered TaskManager.
type member struct {
	TaskManager
	owners []weir.JobID            // by slot; zero: free
	old    map[weir.AttemptID]bool // attempts of an earlier time that still run
}

// free is how many slots the member offers.
func (m *member) free() int {
	if len(m.old) > 0 {
		return 0
	}
	return len(m.owners) - m.used()
}

func (m *member) used() int {
	n := 0
	for _, owner := range m.owners {
		if !owner.IsZero() {
			n++
		}
	}
	return n
}

// request is a job that waits.
type request struct {
	want Request
	said string // what the job was told last
}

// SlotTable is the registered TaskManagers, their slots, and the jobs that wait for
// some. Only the dispatcher's loop may call it.
type SlotTable struct {
	members map[weir.TaskManagerID]*member
	waiting []request // first come, first served
}

// NewSlotTable returns an empty table.
func NewSlotTable() *SlotTable {
	return &SlotTable{members: make(map[weir.TaskManagerID]*member)}
}

// Step takes an event and says what follows from it.
func (t *SlotTable) Step(ev Event) []Action {
	switch e := ev.(type) {
	case Register:
		return t.register(e)
	case Ended:
		return t.ended(e)
	case Gone:
		return t.gone(e)
	case Request:
		return t.request(e)
	case Return:
		return t.giveBack(e)
	case Release:
		return t.release(e)
	}
	return nil
}

// Counts returns the number of TaskManagers, of slots, and of those that are free.
func (t *SlotTable) Counts() (members, slots, free int) {
	for _, m := range t.members {
		slots += len(m.owners)
		free += m.free()
	}
	return len(t.members), slots, free
}

// Free is how many slots of one TaskManager are free.
func (t *SlotTable) Free(id weir.TaskManagerID) int {
	if m := t.members[id]; m != nil {
		return m.free()
	}
	return 0
}

// Has says whether this process of a TaskManager is registered.
func (t *SlotTable) Has(id weir.TaskManagerID, incarnation weir.Incarnation) bool {
	m := t.members[id]
	return m != nil && m.Incarnation == incarnation
}

func (t *SlotTable) register(e Register) []Action {
	var acts []Action
	if old := t.members[e.TaskManager.ID]; old != nil {
		reason := "it registered again"
		if old.Incarnation != e.TaskManager.Incarnation {
			reason = "another process took its place"
		}
		acts = append(acts, Lost{old.ID, old.Incarnation, reason})
	}
	m := &member{TaskManager: e.TaskManager, owners: make([]weir.JobID, e.TaskManager.Slots), old: make(map[weir.AttemptID]bool)}
	for _, a := range e.Running {
		m.old[a] = true
	}
	t.members[m.ID] = m
	return append(acts, t.serve()...)
}

func (t *SlotTable) ended(e Ended) []Action {
	m := t.members[e.TaskManager]
	if m == nil || !m.old[e.Attempt] {
		return nil
	}
	delete(m.old, e.Attempt)
	return t.serve()
}

func (t *SlotTable) gone(e Gone) []Action {
	if !t.Has(e.ID, e.Incarnation) {
		return []Action{Note{fmt.Sprintf("%s, which is not registered", e)}}
	}
	delete(t.members, e.ID)
	return append([]Action{Lost(e)}, t.serve()...)
}

func (t *SlotTable) request(e Request) []Action {
	t.forget(e.Job)
	t.waiting = append(t.waiting, request{want: e})
	return t.serve()
}

func (t *SlotTable) giveBack(e Return) []Action {
	for _, s := range e.Slots {
		m := t.members[s.TaskManager]
		if m != nil && m.Incarnation == s.Incarnation && s.Index < len(m.owners) && m.owners[s.Index] == e.Job {
			m.owners[s.Index] = weir.JobID{}
		}
	}
	return t.serve()
}

func (t *SlotTable) release(e Release) []Action {
	t.forget(e.Job)
	for _, m := range t.members {
		for i := range m.owners {
			if m.owners[i] == e.Job {
				m.owners[i] = weir.JobID{}
			}
		}
	}
	return t.serve()
}

func (t *SlotTable) forget(job weir.JobID) {
	t.waiting = slices.DeleteFunc(t.waiting, func(r request) bool { return r.want.Job == job })
}

// serve grants what can be granted, in order of arrival, and tells the others what
// is missing if that has changed. A large request in front does not hold up a small
// one behind it.
func (t *SlotTable) serve() []Action {
	var acts []Action
	rest := t.waiting[:0]
	for _, r := range t.waiting {
		if free := t.freeFor(r.want.CodeID); free >= len(r.want.Wants) {
			acts = append(acts, Granted{r.want.Job, r.want.N, t.take(r.want)})
			continue
		}
		if text := t.shortage(r.want); text != r.said {
			r.said = text
			acts = append(acts, Short{Job: r.want.Job, N: r.want.N, Wanted: len(r.want.Wants), Free: t.freeFor(r.want.CodeID), Text: text})
		}
		rest = append(rest, r)
	}
	clear(t.waiting[len(rest):])
	t.waiting = rest
	return acts
}

func (t *SlotTable) freeFor(codeID string) int {
	n := 0
	for _, m := range t.members {
		if m.CodeID == codeID {
			n += m.free()
		}
	}
	return n
}

// take chooses slots: first those that are preferred, then one by one of the
// TaskManager that is least used, so that the job is spread evenly.
func (t *SlotTable) take(r Request) []Slot {
	slots := make([]Slot, len(r.Wants))
	taken := make([]bool, len(r.Wants))
	for i, w := range r.Wants {
		if m := t.members[w.Prefer]; m != nil && m.CodeID == r.CodeID && m.free() > 0 {
			slots[i], taken[i] = m.occupy(r.Job), true
		}
	}
	for i := range r.Wants {
		if !taken[i] {
			slots[i] = t.leastUsed(r.CodeID).occupy(r.Job)
		}
	}
	return slots
}

// leastUsed returns the member with the smallest share of its slots in use, the
// smallest id among equals.
func (t *SlotTable) leastUsed(codeID string) *member {
	var best *member
	for _, id := range t.sorted() {
		m := t.members[id]
		if m.CodeID != codeID || m.free() == 0 {
			continue
		}
		if best == nil || m.used()*len(best.owners) < best.used()*len(m.owners) {
			best = m
		}
	}
	return best
}

// occupy takes the member's first free slot.
func (m *member) occupy(job weir.JobID) Slot {
	i := slices.IndexFunc(m.owners, weir.JobID.IsZero)
	m.owners[i] = job
	return Slot{m.ID, m.Incarnation, i}
}

// shortage says what a request waits for.
func (t *SlotTable) shortage(r Request) string {
	members, total, busy, stopping := 0, 0, 0, 0
	for _, m := range t.members {
		if m.CodeID != r.CodeID {
			continue
		}
		members++
		total += len(m.owners)
		if len(m.old) > 0 {
			stopping += len(m.owners)
		} else {
			busy += m.used()
		}
	}
	text := fmt.Sprintf("needs %d more slots, %d are free: ", len(r.Wants), total-busy-stopping)
	switch {
	case len(t.members) == 0:
		return text + "no TaskManager is registered"
	case members == 0:
		return text + fmt.Sprintf("none of the %d TaskManagers has the job's code id", len(t.members))
	}
	text += fmt.Sprintf("%d TaskManagers with the job's code id have %d slots", members, total)
	if busy > 0 {
		text += fmt.Sprintf(", %d in use", busy)
	}
	if stopping > 0 {
		text += fmt.Sprintf(", %d where tasks of an earlier time are ending", stopping)
	}
	return text
}

// sorted returns the ids of the members in order.
func (t *SlotTable) sorted() []weir.TaskManagerID {
	return slices.SortedFunc(maps.Keys(t.members), func(a, b weir.TaskManagerID) int { return bytes.Compare(a[:], b[:]) })
}
