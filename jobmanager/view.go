package jobmanager

import (
	"fmt"
	"path"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobmanager/checkpointing"
	"github.com/weirflow/weir/jobmanager/execgraph"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/jobmanager/jobmaster"
	"github.com/weirflow/weir/jobmanager/joboption"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/snapshotmeta"
)

// recorded is what the records say of a job.
func recorded(job ha.Job) jobmaster.Report {
	r := jobmaster.Report{Job: job.Record, Started: job.Record.Submitted}
	for s := rpc.JobInitializing; s <= rpc.JobFailed; s++ {
		if s.String() == job.Status.State {
			r.Status = s
		}
	}
	r.Restarts, r.Failure = int(job.Status.Restarts), job.Status.Failure
	if job.Status.Terminal {
		result := jobmaster.DecodeResult(job.Status.Result)
		r.Ended, r.Detail, r.Latest = job.Status.Since, result.Detail, result.LastCheckpoint
		r.Stopped = result.Stop
		r.Tasks = make([]execgraph.Execution, min(max(result.Tasks, 0), weir.MaxMaxParallelism))
	}
	return r
}

func summary(r jobmaster.Report) rpc.JobSummary {
	return rpc.JobSummary{
		Job: r.Job.Job, Name: r.Job.Name, Entrypoint: r.Job.EntryPoint, Status: r.Status, Detail: r.Detail,
		Started: r.Started, Ended: r.Ended, Tasks: len(r.Tasks), Running: r.Running, Restarts: r.Restarts, LastCheckpoint: r.Latest,
	}
}

func detail(r jobmaster.Report, location string) rpc.JobDetail {
	d := rpc.JobDetail{JobSummary: summary(r), RequestID: r.Job.RequestID, Failure: r.Failure, RestoredFrom: r.RestoredFrom, RestoreReason: r.WhyRestored, Stopping: r.Stopping}
	if r.Stopped != nil {
		d.Savepoint = pathOf(location, r.Stopped.Metadata)
	}
	if r.Body == nil {
		return d
	}
	d.Params, d.Graph = r.Body.Params, *r.Body.Graph
	d.Options = r.Body.Options
	if settings, err := joboption.Parse(r.Body.Options); err == nil {
		d.Options = joboption.Effective(r.Body.Options, settings)
	}
	if d.RestoreReason == "" {
		d.RestoreReason = r.Body.Why
	}
	if d.RestoredFrom == "" && r.Body.From != nil {
		d.RestoredFrom = r.Body.From.Path
	}
	for _, x := range r.Tasks {
		if int(x.ID.Vertex) >= len(d.Graph.Vertices) || r.Spec == nil {
			continue
		}
		t := rpc.TaskDetail{Attempt: x.ID, Vertex: d.Graph.Vertices[x.ID.Vertex].Name, State: rpc.TaskState(x.State), Stats: r.Stats[x.ID]}
		if x.State >= execgraph.Scheduled && x.At != (execgraph.Location{}) {
			t.TaskManager = fmt.Sprintf("%s/%.8s", r.Hosts[x.At.TaskManager], x.At.TaskManager)
		}
		if x.Failure != nil {
			t.Failure = x.Failure.Error()
		}
		d.Tasks = append(d.Tasks, t)
	}
	return d
}

// maxListedSubtasks bounds the subtasks in a list of checkpoints, so that it fits a message
// (64 MiB) with names of 200 bytes.
const maxListedSubtasks = 150_000

// checkpoints joins what the job's coordinator remembers with the links of the chain,
// of which older ones may be from an earlier leader.
func checkpoints(r jobmaster.Report, links []ha.Link, location string) rpc.CheckpointList {
	s, _ := r.Checkpoints.Bounded(maxListedSubtasks)
	list := rpc.CheckpointList{
		Job: r.Job.Job, Completed: s.Completed, Failed: s.Failed, Pending: s.Pending, Restored: r.Restored, Restores: s.Restores,
		Summary: checkpointSummary(s.Summary()),
	}
	for _, x := range []struct {
		to   **rpc.CheckpointInfo
		from *checkpointing.CheckpointStatistics
	}{{&list.Latest.Completed, s.LatestCompleted}, {&list.Latest.Savepoint, s.LatestSavepoint}, {&list.Latest.Failed, s.LatestFailed}} {
		if x.from != nil {
			info := checkpoint(r, x.from, location)
			*x.to = &info
		}
	}
	known := make(map[weir.CheckpointID]bool)
	for i := range s.Recent {
		info := checkpoint(r, &s.Recent[i], location)
		known[info.ID] = true
		list.Recent = append(list.Recent, info)
	}
	for i := len(links) - 1; i >= 0; i-- {
		if l := links[i]; !known[l.Checkpoint] {
			list.Recent = append(list.Recent, rpc.CheckpointInfo{
				ID: l.Checkpoint, Kind: l.Kind, Status: rpc.CheckpointCompleted, Triggered: l.At, Bytes: l.Bytes, Path: pathOf(location, l.Metadata),
			})
		}
	}
	return list
}

func checkpoint(r jobmaster.Report, s *checkpointing.CheckpointStatistics, location string) rpc.CheckpointInfo {
	info := rpc.CheckpointInfo{
		ID: s.ID, Kind: s.Kind, Status: rpc.CheckpointStatus(s.Status), Triggered: s.Triggered, Duration: s.Duration, Bytes: s.Bytes,
		PersistedBytes: s.PersistedBytes, Unaligned: s.Unaligned, Path: pathOf(location, s.Metadata), Reason: s.Reason, Message: s.Message,
	}
	info.NewBytes, info.Tasks, info.Acknowledged, info.Steps = s.NewBytes, s.Tasks, s.Acknowledged, steps(s)
	name := func(vertex int32) string {
		if r.Spec == nil || int(vertex) >= len(r.Spec.Graph.Vertices) {
			return ""
		}
		return r.Spec.Graph.Vertices[vertex].Name
	}
	for _, v := range s.Vertices {
		info.Vertices = append(info.Vertices, rpc.VertexCheckpoint{
			Vertex: v.Vertex, Name: name(v.Vertex), Tasks: v.Tasks, Acknowledged: v.Acknowledged, Slowest: v.Slowest, LastAck: v.LastAck,
			StartDelay: v.StartDelay, Alignment: v.Alignment, Sync: v.Sync, Async: v.Async,
			StateBytes: v.StateBytes, PersistedBytes: v.PersistedBytes, AlignedBytes: v.AlignedBytes,
		})
	}
	subtask := func(t checkpointing.SubtaskStatistics) rpc.SubtaskCheckpoint {
		return rpc.SubtaskCheckpoint{Vertex: name(t.Attempt.Vertex), Attempt: t.Attempt, Acknowledged: t.Acknowledged, Metrics: t.Metrics}
	}
	for _, t := range s.Subtasks {
		info.Subtasks = append(info.Subtasks, subtask(t))
	}
	for _, t := range s.Late {
		info.Late = append(info.Late, subtask(t))
	}
	return info
}

// steps are a checkpoint's, relative to its trigger.
func steps(s *checkpointing.CheckpointStatistics) (list []rpc.StepTime) {
	t := s.Timeline
	for i, at := range [...]time.Time{
		rpc.StepRequested: t.Requested, rpc.StepDecided: t.Decided, rpc.StepPlanned: t.Planned, rpc.StepTriggered: t.IDTaken,
		rpc.StepLocated: t.Located, rpc.StepCoordinated: t.Coordinated, rpc.StepHooked: t.Hooked, rpc.StepTasksTriggered: t.TasksTriggered,
		rpc.StepFirstAck: t.FirstAck, rpc.StepLastAck: t.LastAck, rpc.StepWritten: t.Written, rpc.StepLinkBegan: t.LinkBegan,
		rpc.StepLinked: t.Linked, rpc.StepNotified: t.Notified,
	} {
		// The last acknowledgement so far is not the last one.
		if !at.IsZero() && (i != int(rpc.StepLastAck) || s.Acknowledged == s.Tasks) {
			list = append(list, rpc.StepTime{Step: rpc.CheckpointStep(i), At: at.Sub(s.Triggered)})
		}
	}
	return list
}

func checkpointSummary(s checkpointing.Summary) rpc.CheckpointSummary {
	q := func(q checkpointing.Quantiles) rpc.Quantiles { return rpc.Quantiles(q) }
	return rpc.CheckpointSummary{
		Duration: q(s.Duration), Bytes: q(s.Bytes), NewBytes: q(s.NewBytes), AlignedBytes: q(s.AlignedBytes), PersistedBytes: q(s.PersistedBytes),
		StartDelay: q(s.StartDelay), Alignment: q(s.Alignment), Sync: q(s.Sync), Async: q(s.Async),
	}
}

// pathOf is the directory of a snapshot, as a user gives it to --from.
func pathOf(location, metadata string) string {
	if metadata == "" {
		return ""
	}
	if elsewhere, name, foreign := snapshotmeta.CutForeign(metadata); foreign {
		location, metadata = elsewhere, name
	}
	return path.Join(location, path.Dir(metadata))
}
