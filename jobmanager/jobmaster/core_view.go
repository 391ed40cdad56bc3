package jobmaster

import (
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobmanager/checkpointing"
	"github.com/weirflow/weir/jobmanager/execgraph"
	"github.com/weirflow/weir/rpc"
)

// View is a copy of what is known of a job, for outsiders.
type View struct {
	Status       rpc.JobStatus
	Detail       string
	Restarts     int
	Failure      *weir.Failure
	Running      int
	RestoredFrom string
	WhyRestored  string                // for people: why from that, or from nothing
	Restored     weir.CheckpointID     // what the last run started from
	Tasks        []execgraph.Execution // by vertex and subtask
	Checkpoints  checkpointing.Statistics
	Interval     time.Duration // of periodic checkpoints, 0: none
	Latest       weir.CheckpointID
	Stopping     string     // request of the stop that is under way
	Stopped      *StopEnded // how the stop went with which the job ended
}

// View copies what is known of the job.
func (c *Core) View(now time.Time) View {
	v := View{
		Status: c.status, Detail: c.detail, Restarts: c.restarts, Failure: c.failure,
		Running: c.graph.Count(execgraph.Running), RestoredFrom: c.restoredFrom, WhyRestored: c.whyRestored, Restored: c.restoredID,
		Checkpoints: c.coordinator.Statistics(now), Interval: c.coordinator.Options().Interval, Stopped: c.stopped,
	}
	if c.stop != nil {
		v.Stopping = c.stop.Request
	}
	if latest, ok := c.coordinator.Latest(); ok {
		v.Latest = latest.ID
	}
	for id := range c.graph.Subtasks() {
		x := c.graph.Current(id)
		x.ID.Job, x.ID.Vertex, x.ID.Subtask, x.ID.Epoch = c.spec.Job, id.Vertex, id.Subtask, c.spec.Epoch
		v.Tasks = append(v.Tasks, x)
	}
	return v
}
