package sim

import (
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/rpc"
)

// stillness finds a checkpoint that starves: it waits for a barrier that a task cannot
// emit, since nobody who could make room for it goes on before the checkpoint is over.
type stillness struct {
	moved map[*instance]int64 // records in and out of the tasks, as of the last heartbeat
	since time.Time           // when one of them changed last, or a checkpoint was triggered
	asked time.Time           // when the pending checkpoint was triggered; zero: its tasks are gone
}

// beat notes how many records the tasks of a TaskManager had when it sent a heartbeat.
func (s *stillness) beat(by *instance, now time.Time, tasks []rpc.TaskStats) {
	var sum int64
	for _, t := range tasks {
		sum += t.RecordsIn + t.RecordsOut
	}
	if s.moved == nil {
		s.moved = make(map[*instance]int64)
	}
	if s.moved[by] != sum {
		s.moved[by], s.since = sum, now
	}
}

// starves returns the checkpoint that is pending while nothing has moved for a time, or 0.
func (o *Oracle) starves(now time.Time, after time.Duration) weir.CheckpointID {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.pending == 0 || now.Sub(o.mu.still.since) < after {
		return 0
	}
	return o.mu.pending
}

// asks notes that a checkpoint is triggered.
func (s *stillness) asks(now time.Time) { s.since, s.asked = now, now }

// restarts notes that tasks are deployed: no checkpoint is pending any more.
func (s *stillness) restarts() { s.asked = time.Time{} }

// late returns the checkpoint that has been pending for longer than that, or 0, and since when.
func (o *Oracle) late(now time.Time, after time.Duration) (id weir.CheckpointID, asked time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.pending == 0 || o.mu.still.asked.IsZero() || now.Sub(o.mu.still.asked) < after {
		return 0, time.Time{}
	}
	return o.mu.pending, o.mu.still.asked
}

// checkPromptness demands, in a world without faults, that a checkpoint is complete soon after
// its barriers may overtake, if they may on all edges: whatever is queued, it waits for a record in
// each vertex at most.
func (w *World) checkPromptness() {
	g := w.Plan.Graph
	if g == nil {
		return
	}
	stage := g.Stages[g.stage]
	if stage.overtakes == 0 {
		return
	}
	after := stage.overtakes + 8*stage.Params.Sleep + time.Second
	if id, asked := w.oracle.late(w.now(), after); id != 0 && asked.Sub(w.began) > w.healedAt {
		w.fail("checkpoint %d is pending for %s, though its barriers overtake", id, after)
	}
}

// checkStarvation demands that records move while a checkpoint is pending, in a world without
// faults. A batch of 64 records counts when it is done.
func (w *World) checkStarvation() {
	g := w.Plan.Graph
	if g == nil || g.Stages[g.stage].Options["execution.checkpointing.timeout"] != "10s" {
		return
	}
	after := 64*g.Stages[g.stage].Params.Sleep + 2*w.Plan.HeartbeatInterval + time.Second
	if w.age()-w.healedAt < after {
		return
	}
	if id := w.oracle.starves(w.now(), after); id != 0 {
		w.fail("checkpoint %d is pending, and no record has moved for %s", id, after)
	}
}
