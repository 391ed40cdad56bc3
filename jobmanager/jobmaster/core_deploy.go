package jobmaster

import (
	"fmt"
	"slices"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/planted"
	"github.com/weirflow/weir/jobmanager/checkpointing"
	"github.com/weirflow/weir/jobmanager/execgraph"
	"github.com/weirflow/weir/jobmanager/opcoord"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/snapshotmeta"
)

// prepare begins a run of the affected vertices.
func (c *Core) prepare() {
	c.phase = preparing
	c.run++
	for id := range c.affectedTasks() {
		c.graphStep(execgraph.Create{Subtask: id})
	}
	for i, s := range c.sources {
		if c.affected[s.vertex] {
			c.hold(i, opcoord.Reset{})
		}
	}
	c.restored, c.loading = nil, false
	c.forgetEnds()
	if latest, ok := c.coordinator.Latest(); ok {
		if planted.Is(planted.RestoredFromOldest) {
			latest = c.coordinator.Retained()[0]
		}
		c.loading = true
		c.whyRestored = c.reasonFor(latest)
		c.emit(LoadSnapshot{Run: c.run, Metadata: latest.Metadata, Why: c.whyRestored})
	} else {
		c.whyRestored = c.spec.Start
		c.restoreHooks(nil)
		c.startCoordinators()
	}
	c.requestSlots()
}

// requestSlots asks for what is missing.
func (c *Core) requestSlots() {
	wants := c.scheduler.Missing()
	if len(wants) == 0 {
		return
	}
	c.request++
	c.emit(RequestSlots{Request: c.request, Wants: wants})
	if c.slotTimer == 0 {
		c.slotTimer = c.armTimer(SlotTimer, c.spec.Settings.SlotTimeout)
	}
}

func (c *Core) slotsGranted(e SlotsGranted) {
	locations := make([]execgraph.Location, len(e.Slots))
	for i, s := range e.Slots {
		locations[i] = s.Location
	}
	if c.phase == ended || e.Request != c.request || c.scheduler.Grant(locations) != nil {
		c.emit(ReturnSlots{Slots: e.Slots})
		return
	}
	for _, s := range e.Slots {
		c.addresses[taskManagerOf(s.Location)] = s.DataAddress
	}
	c.cancelTimer(SlotTimer, &c.slotTimer)
	if c.phase == preparing {
		c.setStatus(c.status, "")
	}
}

func (c *Core) slotsShort(e SlotsShort) {
	if e.Request == c.request && c.phase == preparing {
		c.setStatus(c.status, e.Text)
	}
}

// slotTimeout ends a job that never got its slots; one that ran before counts it as
// a failure, since a TaskManager may come back.
func (c *Core) slotTimeout() {
	if c.phase != preparing {
		return
	}
	c.fail(&weir.Failure{
		Message: fmt.Sprintf("no slots within %s: %s", c.spec.Settings.SlotTimeout, orWord(c.detail, "no answer")),
		Fault:   weir.FaultOutside,
		NoRetry: !c.everRan,
		Subtask: -1,
	}, nil)
}

func (c *Core) snapshotLoaded(e SnapshotLoaded) {
	if !c.loading || e.Run != c.run {
		c.note("%s, which is not awaited", e)
		return
	}
	c.loading = false
	if err := CheckRestore(c.spec.Graph, c.spec.GraphText, e.Snapshot, c.spec.Settings.Recovery); err != nil {
		c.fail(&weir.Failure{Message: err.Error(), Fault: weir.FaultUser, NoRetry: true, Subtask: -1}, nil)
		return
	}
	c.restored = &restoration{
		snapshot: e.Snapshot, coordinators: e.Coordinators,
		shares:    make(map[weir.OperatorID][]weir.OperatorSubtaskState),
		flying:    exchanges(e.Snapshot),
		recovered: make([][][]rpc.RecoveredChannel, len(c.spec.Graph.Vertices)),
	}
	c.restoredFrom, c.restoredID = restoredText(&e.Snapshot.Header), e.Snapshot.Header.Checkpoint
	if latest, ok := c.coordinator.Latest(); ok {
		c.checkpoint(checkpointing.StateRestored{From: checkpointing.RestoredSnapshot{
			Checkpoint: latest.ID, Kind: latest.Kind, Metadata: latest.Metadata, Foreign: latest.Foreign,
		}})
	}
	c.restoreHooks(e.Snapshot)
	c.startCoordinators()
}

// restoreHooks has the master hooks restored if the whole job is.
func (c *Core) restoreHooks(from *snapshotmeta.Snapshot) {
	c.hooking = make(map[string]bool)
	if len(c.hooks) == 0 || slices.Contains(c.affected, false) {
		return
	}
	a := RestoreHooks{Run: c.run, Hooks: hookStates(c.hooks, from)}
	if from != nil {
		a.Checkpoint = from.Header.Checkpoint
	}
	for _, name := range c.hooks {
		c.hooking[name] = true
	}
	c.emit(a)
}

func restoredText(h *snapshotmeta.Header) string {
	return fmt.Sprintf("%s %d of job %s", h.Kind, h.Checkpoint, h.Job)
}

// startCoordinators makes the coordinators of the sources of this run.
func (c *Core) startCoordinators() {
	clear(c.starting)
	for i, s := range c.sources {
		if !c.affected[s.vertex] {
			continue
		}
		c.coordinators[i] = c.run
		c.starting[s.id] = true
		delete(c.splits, s.id)
		a := StartCoordinator{Run: c.run, Operator: s.id, Name: s.name, Parallelism: c.spec.Graph.Vertices[s.vertex].Parallelism}
		if c.restored != nil && c.restored.snapshot.Operator(s.id) != nil {
			a.Restored, a.State = true, c.restored.coordinators[s.id]
		}
		c.emit(a)
	}
}

func (c *Core) coordinatorStarted(e CoordinatorStarted) {
	if e.Run != c.run || !c.starting[e.Operator] {
		c.note("%s, which is not awaited", e)
		return
	}
	delete(c.starting, e.Operator)
	for _, s := range c.sources {
		if p := c.spec.Graph.Vertices[s.vertex].Parallelism; s.id == e.Operator && e.Splits != nil && len(e.Splits) != p {
			c.fail(&weir.Failure{
				Message: fmt.Sprintf("the enumerator assigned splits to %d readers, there are %d", len(e.Splits), p),
				Fault:   weir.FaultUser, NoRetry: true, Operator: s.name, Subtask: -1,
			}, c.regions[s.vertex])
			return
		}
	}
	c.splits[e.Operator] = e.Splits
}

// tryDeploy deploys the run once it has everything.
func (c *Core) tryDeploy() {
	if c.loading || len(c.starting) > 0 || len(c.hooking) > 0 || len(c.scheduler.Missing()) > 0 {
		return
	}
	c.phase = deploying
	for id := range c.affectedTasks() {
		at, _ := c.scheduler.Place(id)
		c.graphStep(execgraph.Assign{Subtask: id, At: at})
	}
	// From the sinks to the sources, since TaskManagers set buffers aside in the order
	// of deployments: nobody may borrow what a task downstream needs to get on.
	for _, id := range slices.Backward(slices.Collect(c.affectedTasks())) {
		c.graphStep(execgraph.Deploy{Subtask: id})
	}
	clear(c.splits)
	c.restored = nil
}

// tryRun notes that all tasks run, or that all have finished.
func (c *Core) tryRun() {
	up, done := c.graph.Count(execgraph.Running), c.graph.Count(execgraph.Finished)
	switch {
	case done == c.graph.Total():
		if !c.coordinator.Linking() {
			c.end(rpc.JobFinished, "")
		}
	case c.phase == deploying && up+done == c.graph.Total():
		c.phase = running
		clear(c.affected)
		c.everRan = true
		c.setStatus(rpc.JobRunning, "")
		c.checkpoint(checkpointing.TasksRunning{})
		c.finalCheckpoint()
	}
}

// end ends the job for good.
func (c *Core) end(s rpc.JobStatus, detail string) {
	c.phase = ended
	c.cancelTimer(SlotTimer, &c.slotTimer)
	c.cancelTimer(RestartTimer, &c.restartTimer)
	c.cancelTimer(LastTimer, &c.lastTimer)
	c.checkpoint(checkpointing.Shutdown{})
	c.endStop(s)
	for i, src := range c.sources {
		if c.coordinators[i] != 0 {
			c.coordinators[i] = 0
			c.emit(StopCoordinator{Operator: src.id})
		}
	}
	c.emit(ReleaseSlots{})
	c.setStatus(s, detail)
	c.emit(JobEnded{Status: s})
}

// taskManagerOf is the key of a TaskManager's address.
func taskManagerOf(at execgraph.Location) execgraph.Location {
	at.Slot = 0
	return at
}
