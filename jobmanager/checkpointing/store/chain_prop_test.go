package store_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobmanager/checkpointing/store"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/snapshotmeta"
)

// process is one JobManager of the property test; all but the last were overtaken.
type process struct {
	jobs  *ha.JobStore
	chain *store.Chain
}

// lives is a registry with the JobManagers that led one after another, and what a
// careful observer noted.
type lives struct {
	mem       *ha.Memory
	observer  *ha.JobStore
	faults    []string // of the next transactions: "", "drop", "lose"
	processes []process
	taken     map[weir.CheckpointID]bool // ids that were handed out
	permitted map[weir.CheckpointID]bool // checkpoints that may be notified
	removed   map[weir.CheckpointID]bool
}

// background has no channel from outside the bubble, which would stop its clock.
var background = context.Background()

var errNoAnswer = errors.New("no answer")

// fault answers for one half of a call whether it goes wrong; the half after takes
// the fault off the list.
func (l *lives) fault(kind string, c ha.Call) error {
	if c.Method != "txn" || len(l.faults) == 0 {
		return nil
	}
	now := l.faults[0]
	if kind == "lose" || now == kind {
		l.faults = l.faults[1:]
	}
	if now == kind {
		return errNoAnswer
	}
	return nil
}

// succeed overtakes the present leader.
func (l *lives) succeed(t *rapid.T) {
	l.mem.OvertakeLeader()
	c := l.mem.Connect("jm", ha.Hook{
		Before: func(_ context.Context, c ha.Call) error { return l.fault("drop", c) },
		After:  func(_ context.Context, c ha.Call) error { return l.fault("lose", c) },
	})
	lead, err := c.Campaign(background, ha.Candidate{ID: "jm"})
	if err != nil {
		t.Fatal(err)
	}
	jobs := ha.NewJobStore(c, lead.Epoch())
	if _, _, err := jobs.Submit(background, ha.JobRecord{Job: job, Name: "job", RequestID: "r"}, ha.JobStatus{State: "running"}); err != nil {
		t.Fatal(err)
	}
	chain, err := store.OpenChain(background, jobs, job)
	if err != nil {
		t.Fatal(err)
	}
	l.processes = append(l.processes, process{jobs, chain})
}

// checkpoint takes an id and adds a link, by any process.
func (l *lives) checkpoint(t *rapid.T) {
	i := rapid.IntRange(0, len(l.processes)-1).Draw(t, "process")
	p, leads := l.processes[i], i == len(l.processes)-1
	id, err := store.NewCheckpointIDCounter(p.jobs, job).Next(background)
	if (err == nil) != leads {
		t.Fatalf("process %d (leads: %v) takes id %d: %v", i, leads, id, err)
	}
	if err != nil {
		return
	}
	if l.taken[id] {
		t.Fatalf("id %d was taken twice", id)
	}
	l.taken[id] = true
	if rapid.Bool().Draw(t, "aborted") {
		return
	}
	permit, err := p.chain.Add(background, store.Completed{Checkpoint: id, Metadata: snapshotmeta.MetadataName(job, id)})
	if err != nil || permit.ID() != id {
		t.Fatalf("add %d: permit %d, %v", id, permit.ID(), err)
	}
	l.permitted[id] = true
}

// late lets an overtaken process try to add and to remove.
func (l *lives) late(t *rapid.T) {
	if len(l.processes) < 2 {
		return // nobody was overtaken
	}
	p := l.processes[rapid.IntRange(0, len(l.processes)-2).Draw(t, "process")]
	permit, err := p.chain.Add(background, store.Completed{Checkpoint: 1 << 40, Metadata: "late"})
	if permit.ID() != weir.NoCheckpoint || !errors.Is(err, ha.ErrNotLeader) && !errors.Is(err, ha.ErrOvertaken) {
		t.Fatalf("late add: permit %d, %v", permit.ID(), err)
	}
	for _, link := range p.chain.Links() {
		if err := p.chain.Remove(background, link.Checkpoint); err == nil && !l.removed[link.Checkpoint] {
			t.Fatalf("late removal of checkpoint %d", link.Checkpoint)
		}
	}
}

// subsume removes the oldest link.
func (l *lives) subsume(t *rapid.T) {
	p := l.processes[len(l.processes)-1]
	links := p.chain.Links()
	if len(links) == 0 {
		return
	}
	err := p.chain.Remove(background, links[0].Checkpoint)
	if want := len(links) > 1; (err == nil) != want {
		t.Fatalf("remove %d of %d links: %v", links[0].Checkpoint, len(links), err)
	}
	l.removed[links[0].Checkpoint] = err == nil
}

// disturb makes some of the next transactions go wrong.
func (l *lives) disturb(t *rapid.T) {
	l.faults = rapid.SliceOfN(rapid.SampledFrom([]string{"", "drop", "lose"}), 1, 6).Draw(t, "faults")
}

// check compares the chain with what was permitted.
func (l *lives) check(t *rapid.T) {
	links, err := l.observer.Links(background, job)
	if err != nil && len(l.processes) > 0 {
		t.Fatal(err)
	}
	there := make(map[weir.CheckpointID]bool)
	for _, link := range links {
		there[link.Checkpoint] = true
		if !l.permitted[link.Checkpoint] || l.removed[link.Checkpoint] {
			t.Fatalf("link %d is checkpoint %d: permitted %v, removed %v", link.Number, link.Checkpoint, l.permitted[link.Checkpoint], l.removed[link.Checkpoint])
		}
	}
	for id := range l.permitted {
		if !there[id] && !l.removed[id] {
			t.Fatalf("checkpoint %d was permitted and is not in the chain", id)
		}
	}
}

func property(t *rapid.T) {
	l := &lives{
		mem: ha.NewMemory(0), taken: make(map[weir.CheckpointID]bool),
		permitted: make(map[weir.CheckpointID]bool), removed: make(map[weir.CheckpointID]bool),
	}
	l.observer = ha.NewJobStore(l.mem.Connect("observer", ha.Hook{}), 0)
	l.succeed(t)
	t.Repeat(map[string]func(*rapid.T){
		"succeed": l.succeed, "checkpoint": l.checkpoint, "late": l.late, "subsume": l.subsume, "disturb": l.disturb, "": l.check,
	})
}

// Each history lives in a bubble, where the pauses between tries take no time. What
// rapid throws to end one is carried out of it.
func TestChainHoldsWhatWasPermittedWhateverGoesWrong(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var thrown any
		synctest.Test(t, func(*testing.T) {
			defer func() { thrown = recover() }()
			property(r)
		})
		if thrown != nil {
			panic(thrown)
		}
	})
}
