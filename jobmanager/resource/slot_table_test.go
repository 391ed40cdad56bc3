package resource

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/weirflow/weir"
)

func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		table := NewSlotTable()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "free" {
				members, slots, free := table.Counts()
				return fmt.Sprintf("%d task managers, %d slots, %d free", members, slots, free)
			}
			acts := table.Step(event(t, d))
			if len(acts) == 0 {
				return "nothing"
			}
			var b strings.Builder
			for _, a := range acts {
				fmt.Fprintln(&b, a)
			}
			return b.String()
		})
	})
}

func event(t *testing.T, d *datadriven.TestData) Event {
	tm, inc, slots, job, n, attempt := 0, 1, 2, 1, 1, 0
	code := "code"
	d.MaybeScanArgs(t, "tm", &tm)
	d.MaybeScanArgs(t, "inc", &inc)
	d.MaybeScanArgs(t, "slots", &slots)
	d.MaybeScanArgs(t, "job", &job)
	d.MaybeScanArgs(t, "n", &n)
	d.MaybeScanArgs(t, "attempt", &attempt)
	d.MaybeScanArgs(t, "code", &code)
	id := weir.TaskManagerID{byte(tm)}
	a := weir.AttemptID{N: int32(attempt)}
	switch d.Cmd {
	case "register":
		e := Register{TaskManager: TaskManager{ID: id, Incarnation: weir.Incarnation(inc), CodeID: code, Slots: slots}}
		if attempt > 0 {
			e.Running = []weir.AttemptID{a}
		}
		return e
	case "ended":
		return Ended{id, a}
	case "gone":
		return Gone{id, weir.Incarnation(inc), "session broke"}
	case "request":
		e := Request{Job: weir.JobID{byte(job)}, CodeID: code, Wants: make([]Want, n)}
		var prefer int
		if d.MaybeScanArgs(t, "prefer", &prefer); prefer > 0 {
			e.Wants[n-1].Prefer = weir.TaskManagerID{byte(prefer)}
		}
		return e
	case "release":
		return Release{weir.JobID{byte(job)}}
	}
	t.Fatalf("unknown command %s", d.Cmd)
	return nil
}

// TestNoSlotIsGivenTwice checks the table against a plain record of who holds what.
func TestNoSlotIsGivenTwice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		table := NewSlotTable()
		held := map[Slot]weir.JobID{}
		asked := map[weir.JobID]int{}
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			tm := weir.TaskManagerID{byte(rapid.IntRange(1, 3).Draw(t, "tm"))}
			inc := weir.Incarnation(rapid.IntRange(1, 2).Draw(t, "inc"))
			job := weir.JobID{byte(rapid.IntRange(1, 3).Draw(t, "job"))}
			var ev Event
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 4:
				back := Return{Job: job, Slots: []Slot{{TaskManager: tm, Incarnation: inc}}}
				if held[back.Slots[0]] == job {
					delete(held, back.Slots[0])
				}
				ev = back
			case 0:
				ev = Register{TaskManager: TaskManager{ID: tm, Incarnation: inc, Slots: rapid.IntRange(0, 3).Draw(t, "slots")}}
			case 1:
				ev = Gone{tm, inc, "x"}
			case 2:
				ev = Release{job}
				for s, owner := range held {
					if owner == job {
						delete(held, s)
					}
				}
				delete(asked, job)
			case 3:
				n := rapid.IntRange(1, 4).Draw(t, "n")
				ev, asked[job] = Request{Job: job, Wants: make([]Want, n)}, n
			}
			follow(t, table, table.Step(ev), held, asked)
		}
	})
}

func follow(t *rapid.T, table *SlotTable, acts []Action, held map[Slot]weir.JobID, asked map[weir.JobID]int) {
	for _, a := range acts {
		switch a := a.(type) {
		case Lost:
			for s := range held {
				if s.TaskManager == a.ID && s.Incarnation == a.Incarnation {
					delete(held, s)
				}
			}
		case Granted:
			if asked[a.Job] != len(a.Slots) {
				t.Fatalf("granted %d slots, asked for %d", len(a.Slots), asked[a.Job])
			}
			delete(asked, a.Job)
			for _, s := range a.Slots {
				if owner, ok := held[s]; ok || !table.Has(s.TaskManager, s.Incarnation) {
					t.Fatalf("slot %s given to %s, holder %s", s, a.Job, owner)
				}
				held[s] = a.Job
			}
		}
	}
	_, slots, free := table.Counts()
	if slots-free != len(held) {
		t.Fatalf("%d slots in use, want %d", slots-free, len(held))
	}
	for job, n := range asked {
		if n <= free {
			t.Fatalf("%s waits for %d slots, %d are free", job, n, free)
		}
	}
}

func TestSilentTaskManagersAreFound(t *testing.T) {
	t.Parallel()
	m := NewHeartbeatMonitor(10 * time.Second)
	start := time.Unix(100, 0)
	a, b := weir.TaskManagerID{1}, weir.TaskManagerID{2}
	m.Heard(start, b)
	m.Heard(start, a)
	m.Heard(start.Add(5*time.Second), a)
	if s := m.Silent(start.Add(9 * time.Second)); len(s) != 0 {
		t.Errorf("after 9s: %v", s)
	}
	if s := m.Silent(start.Add(10 * time.Second)); len(s) != 1 || s[0] != b {
		t.Errorf("after 10s: %v, want %v", s, b)
	}
	if s := m.Silent(start.Add(15 * time.Second)); len(s) != 2 || s[0] != a {
		t.Errorf("after 15s: %v, want both in order", s)
	}
	m.Forget(b)
	if s := m.Silent(start.Add(15 * time.Second)); len(s) != 1 {
		t.Errorf("after forgetting one: %v", s)
	}
}
