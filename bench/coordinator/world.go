package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/assert"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/jobmanager/checkpointing"
	"github.com/weirflow/weir/jobmanager/execgraph"
	"github.com/weirflow/weir/jobmanager/jobmaster"
	"github.com/weirflow/weir/jobmanager/joboption"
	"github.com/weirflow/weir/jobmanager/opcoord"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/snapshotmeta"
)

const vertices = 4

// world plays everything around one job's core: tasks that acknowledge at once, a
// registry and a store that never fail.
type world struct {
	core     *jobmaster.Core
	now      time.Time
	timer    jobmaster.ArmTimer // the periodic one
	attempts []weir.AttemptID
	due      []jobmaster.Event
	ids      weir.CheckpointID
	complete weir.CheckpointID
	trigger  int // messages of the checkpoint under way
}

// permit stands for the store's.
type permit weir.CheckpointID

func (p permit) ID() weir.CheckpointID { return weir.CheckpointID(p) }

// newWorld starts a job: a source and three operators behind it, one to one, with as many
// subtasks each.
func newWorld(subtasks int) *world {
	settings, err := joboption.Parse(map[string]string{"execution.checkpointing.interval": "10s"})
	assert.That(err == nil, "options", err)
	job := weir.JobID{1}
	w := &world{now: time.Unix(1_700_000_000, 0)}
	w.core = jobmaster.NewCore(&jobmaster.Spec{
		Job: job, Name: "job", Epoch: 1, Graph: graph(subtasks / vertices), Settings: settings,
		Directory: snapshotmeta.JobDir(job), Rand: rand.New(rand.NewPCG(1, 2)),
	})
	w.step(jobmaster.Start{})
	w.settle()
	for range 3 { // so that one is subsumed by each that follows
		w.checkpoint()
	}
	return w
}

func graph(parallelism int) *jobgraph.JobGraph {
	g := &jobgraph.JobGraph{Name: "job"}
	for i := range vertices {
		name := fmt.Sprintf("operator-%d", i)
		v := jobgraph.Vertex{
			Index: i, Name: name, Operators: []string{name}, IDs: []weir.OperatorID{weir.OperatorIDOf(name)},
			Source: i == 0, Parallelism: parallelism, MaxParallelism: weir.MaxMaxParallelism,
		}
		if i > 0 {
			v.Inputs = []int{i - 1}
			g.Edges = append(g.Edges, jobgraph.Edge{
				Index: i - 1, From: i - 1, To: i, Partitioning: jobgraph.Forward,
				FromOperator: g.Vertices[i-1].Name, ToOperator: name,
			})
		}
		if i < vertices-1 {
			v.Outputs = []int{i}
		}
		g.Vertices = append(g.Vertices, v)
	}
	return g
}

// checkpoint fires the periodic timer and answers everything that follows.
func (w *world) checkpoint() {
	before := w.complete
	w.now, w.trigger = w.timer.At, 0
	w.step(jobmaster.TimerFired{Key: w.timer.Key})
	w.settle()
	assert.That(w.complete == before+1 && w.trigger > 0, "no checkpoint was completed", w.complete, w.trigger)
}

func (w *world) settle() {
	for len(w.due) > 0 {
		due := w.due
		w.due = nil
		for _, ev := range due {
			w.step(ev)
		}
	}
}

func (w *world) step(ev jobmaster.Event) {
	for _, action := range w.core.Step(w.now, ev) {
		switch a := action.(type) {
		case jobmaster.RequestSlots:
			w.grant(a)
		case jobmaster.StartCoordinator:
			w.answer(jobmaster.CoordinatorStarted{Run: a.Run, Operator: a.Operator, Splits: make([][][]byte, a.Parallelism)})
		case jobmaster.SnapshotCoordinator:
			w.answer(jobmaster.Coordination{Operator: a.Operator, Event: opcoord.SnapshotTaken{Checkpoint: a.Checkpoint, State: []byte("state")}})
		case jobmaster.ArmTimer:
			if a.Key.Kind == jobmaster.CheckpointTimer && a.Key.Checkpoint.Kind == checkpointing.PeriodicTimer {
				w.timer = a
			}
		case jobmaster.Send:
			w.deliver(a.Message)
		case jobmaster.Store:
			w.store(a.Action)
		case jobmaster.CheckpointEnded:
			assert.That(a.Statistics.Status == checkpointing.Completed, a.Statistics.String())
			w.complete = a.Statistics.ID
		default: // nobody waits for it
		}
	}
}

func (w *world) answer(ev jobmaster.Event) { w.due = append(w.due, ev) }

func (w *world) grant(a jobmaster.RequestSlots) {
	slots := make([]jobmaster.Slot, len(a.Wants))
	for i := range slots {
		slots[i] = jobmaster.Slot{Location: execgraph.Location{TaskManager: weir.TaskManagerID{byte(i % 100)}, Incarnation: 1, Slot: i / 100}, DataAddress: "host:1"}
	}
	w.answer(jobmaster.SlotsGranted{Request: a.Request, Slots: slots})
}

// deliver plays the tasks. The first trigger makes all of them acknowledge.
func (w *world) deliver(m rpc.Message) {
	switch m := m.(type) {
	case rpc.Deploy:
		id := m.Deployment.Attempt
		w.attempts = append(w.attempts, id)
		w.answer(jobmaster.TaskState{Attempt: id, State: rpc.TaskInitializing})
		w.answer(jobmaster.TaskState{Attempt: id, State: rpc.TaskRunning})
	case rpc.TriggerCheckpoint:
		if w.trigger++; w.trigger == 1 {
			w.acknowledge(m.Barrier.ID)
		}
	default: // it has no answer
	}
}

// acknowledge answers for all subtasks: of the sources their barrier comes first.
func (w *world) acknowledge(id weir.CheckpointID) {
	source := weir.OperatorIDOf("operator-0")
	for _, a := range w.attempts {
		if a.Vertex == 0 {
			w.answer(jobmaster.Coordination{Operator: source, Event: opcoord.BarrierSent{Attempt: a, Checkpoint: id}})
		}
		w.answer(jobmaster.Checkpointing{Event: checkpointing.Acknowledged{
			Attempt: a, Checkpoint: id,
			State: weir.TaskStateSnapshot{Operators: []weir.OperatorSubtaskState{{
				Operator: source,
				Keyed:    []weir.KeyedStateHandle{{Backend: "heap", Handle: weir.StateHandle{File: "chk/file", Length: 100}}},
			}}},
			Metrics: weir.CheckpointMetrics{StateBytes: 100, SyncDuration: time.Millisecond},
		}})
	}
}

// store plays the registry and the checkpoint store.
func (w *world) store(action checkpointing.Action) {
	switch a := action.(type) {
	case checkpointing.TakeID:
		w.ids++
		w.answer(jobmaster.Checkpointing{Event: checkpointing.IDTaken{Trigger: a.Trigger, Checkpoint: w.ids}})
	case checkpointing.WriteMetadata:
		w.answer(jobmaster.Checkpointing{Event: checkpointing.MetadataWritten{Checkpoint: a.Checkpoint, Metadata: "job/chk/_metadata", Bytes: 1}})
	case checkpointing.AddLink:
		w.answer(jobmaster.Checkpointing{Event: checkpointing.LinkAdded{Checkpoint: a.Checkpoint, Permit: permit(a.Checkpoint)}})
	case checkpointing.DeleteCheckpoint:
		w.answer(jobmaster.Checkpointing{Event: checkpointing.CleanupEnded{Cleanup: a.Cleanup}})
	default:
		assert.That(false, "not played", action)
	}
}
