package grpc

import (
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/proto/clientpb"
	"github.com/weirflow/weir/rpc"
)

func checkpointListPB(l rpc.CheckpointList) *clientpb.CheckpointList {
	latest := func(c *rpc.CheckpointInfo) *clientpb.CheckpointInfo {
		if c == nil {
			return nil
		}
		return checkpointPB(*c)
	}
	return &clientpb.CheckpointList{
		Job: l.Job[:], Completed: l.Completed, Failed: l.Failed, Pending: l.Pending, Restored: int64(l.Restored), Restores: l.Restores,
		Recent: every(l.Recent, checkpointPB), Summary: checkpointSummaryPB(l.Summary),
		LatestCompleted: latest(l.Latest.Completed), LatestSavepoint: latest(l.Latest.Savepoint), LatestFailed: latest(l.Latest.Failed),
	}
}

func checkpointListOf(p *clientpb.CheckpointList) (l rpc.CheckpointList, err error) {
	id, err := id16("job id", p.GetJob())
	if err != nil {
		return l, err
	}
	l = rpc.CheckpointList{
		Job: weir.JobID(id), Completed: p.GetCompleted(), Failed: p.GetFailed(), Pending: p.GetPending(),
		Restored: weir.CheckpointID(p.GetRestored()), Restores: p.GetRestores(), Summary: checkpointSummaryOf(p.GetSummary()),
	}
	for _, x := range []struct {
		to   **rpc.CheckpointInfo
		from *clientpb.CheckpointInfo
	}{{&l.Latest.Completed, p.GetLatestCompleted()}, {&l.Latest.Savepoint, p.GetLatestSavepoint()}, {&l.Latest.Failed, p.GetLatestFailed()}} {
		if x.from == nil {
			continue
		}
		c, err := checkpointOf(x.from)
		if err != nil {
			return l, err
		}
		*x.to = &c
	}
	l.Recent, err = each(p.GetRecent(), checkpointOf)
	return l, err
}

func checkpointPB(c rpc.CheckpointInfo) *clientpb.CheckpointInfo {
	return &clientpb.CheckpointInfo{
		Id: int64(c.ID), Kind: uint32(c.Kind), Status: uint32(c.Status), Triggered: millis(c.Triggered), Duration: int64(c.Duration),
		Bytes: c.Bytes, Path: c.Path, Reason: uint32(c.Reason), Message: c.Message, PersistedBytes: c.PersistedBytes, Unaligned: c.Unaligned,
		NewBytes: c.NewBytes, Tasks: int32(c.Tasks), Acknowledged: int32(c.Acknowledged),
		Subtasks: every(c.Subtasks, subtaskCheckpointPB), Late: every(c.Late, subtaskCheckpointPB), Vertices: every(c.Vertices, vertexCheckpointPB),
		Steps: every(c.Steps, func(s rpc.StepTime) *clientpb.CheckpointStep {
			return &clientpb.CheckpointStep{Step: uint32(s.Step), At: int64(s.At)}
		}),
	}
}

func checkpointOf(p *clientpb.CheckpointInfo) (c rpc.CheckpointInfo, err error) {
	if c.Kind, err = enum("snapshot kind", p.GetKind(), weir.TerminateSavepoint); err != nil {
		return c, err
	}
	if c.Status, err = enum("checkpoint status", p.GetStatus(), rpc.CheckpointFailed); err != nil {
		return c, err
	}
	if c.Reason, err = enum("failure reason", p.GetReason(), weir.TriggerCheckpointFailure); err != nil {
		return c, err
	}
	c.ID, c.Triggered, c.Duration = weir.CheckpointID(p.GetId()), timeOf(p.GetTriggered()), time.Duration(p.GetDuration())
	c.Bytes, c.Path, c.Message = p.GetBytes(), p.GetPath(), p.GetMessage()
	c.PersistedBytes, c.Unaligned, c.NewBytes = p.GetPersistedBytes(), p.GetUnaligned(), p.GetNewBytes()
	c.Tasks, c.Acknowledged = int(p.GetTasks()), int(p.GetAcknowledged())
	if c.Subtasks, err = each(p.GetSubtasks(), subtaskCheckpointOf); err != nil {
		return c, err
	}
	if c.Late, err = each(p.GetLate(), subtaskCheckpointOf); err != nil {
		return c, err
	}
	for _, v := range p.GetVertices() {
		c.Vertices = append(c.Vertices, vertexCheckpointOf(v))
	}
	c.Steps, err = each(p.GetSteps(), func(s *clientpb.CheckpointStep) (rpc.StepTime, error) {
		step, err := enum("step of a checkpoint", s.GetStep(), rpc.StepNotified)
		return rpc.StepTime{Step: step, At: time.Duration(s.GetAt())}, err
	})
	return c, err
}

func subtaskCheckpointPB(s rpc.SubtaskCheckpoint) *clientpb.SubtaskCheckpoint {
	return &clientpb.SubtaskCheckpoint{Vertex: s.Vertex, Attempt: attemptPB(s.Attempt), Acknowledged: int64(s.Acknowledged), Metrics: checkpointMetricsPB(s.Metrics)}
}

func subtaskCheckpointOf(p *clientpb.SubtaskCheckpoint) (rpc.SubtaskCheckpoint, error) {
	a, err := attemptOf(p.GetAttempt())
	return rpc.SubtaskCheckpoint{Vertex: p.GetVertex(), Attempt: a, Acknowledged: time.Duration(p.GetAcknowledged()), Metrics: checkpointMetricsOf(p.GetMetrics())}, err
}

func vertexCheckpointPB(v rpc.VertexCheckpoint) *clientpb.VertexCheckpoint {
	return &clientpb.VertexCheckpoint{
		Vertex: v.Vertex, Name: v.Name, Tasks: int32(v.Tasks), Acknowledged: int32(v.Acknowledged), Slowest: v.Slowest, LastAck: int64(v.LastAck),
		StartDelay: int64(v.StartDelay), Alignment: int64(v.Alignment), Sync: int64(v.Sync), Async: int64(v.Async),
		StateBytes: v.StateBytes, PersistedBytes: v.PersistedBytes, AlignedBytes: v.AlignedBytes,
	}
}

func vertexCheckpointOf(p *clientpb.VertexCheckpoint) rpc.VertexCheckpoint {
	return rpc.VertexCheckpoint{
		Vertex: p.GetVertex(), Name: p.GetName(), Tasks: int(p.GetTasks()), Acknowledged: int(p.GetAcknowledged()), Slowest: p.GetSlowest(),
		LastAck: time.Duration(p.GetLastAck()), StartDelay: time.Duration(p.GetStartDelay()), Alignment: time.Duration(p.GetAlignment()),
		Sync: time.Duration(p.GetSync()), Async: time.Duration(p.GetAsync()),
		StateBytes: p.GetStateBytes(), PersistedBytes: p.GetPersistedBytes(), AlignedBytes: p.GetAlignedBytes(),
	}
}

func checkpointSummaryPB(s rpc.CheckpointSummary) *clientpb.CheckpointSummary {
	q := func(q rpc.Quantiles) *clientpb.Quantiles {
		return &clientpb.Quantiles{Count: int64(q.Count), Min: q.Min, Max: q.Max, Average: q.Average, P50: q.P50, P90: q.P90, P99: q.P99, P999: q.P999}
	}
	return &clientpb.CheckpointSummary{
		Duration: q(s.Duration), Bytes: q(s.Bytes), NewBytes: q(s.NewBytes), AlignedBytes: q(s.AlignedBytes), PersistedBytes: q(s.PersistedBytes),
		StartDelay: q(s.StartDelay), Alignment: q(s.Alignment), Sync: q(s.Sync), Async: q(s.Async),
	}
}

func checkpointSummaryOf(p *clientpb.CheckpointSummary) rpc.CheckpointSummary {
	q := func(q *clientpb.Quantiles) rpc.Quantiles {
		return rpc.Quantiles{
			Count: int(q.GetCount()), Min: q.GetMin(), Max: q.GetMax(), Average: q.GetAverage(),
			P50: q.GetP50(), P90: q.GetP90(), P99: q.GetP99(), P999: q.GetP999(),
		}
	}
	return rpc.CheckpointSummary{
		Duration: q(p.GetDuration()), Bytes: q(p.GetBytes()), NewBytes: q(p.GetNewBytes()), AlignedBytes: q(p.GetAlignedBytes()),
		PersistedBytes: q(p.GetPersistedBytes()), StartDelay: q(p.GetStartDelay()), Alignment: q(p.GetAlignment()),
		Sync: q(p.GetSync()), Async: q(p.GetAsync()),
	}
}
