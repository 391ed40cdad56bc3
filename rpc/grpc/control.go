package grpc

import (
	"fmt"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/proto/controlpb"
	"github.com/weirflow/weir/rpc"
)

// toJobManager turns what a TaskManager says into its message.
func toJobManager(m rpc.Message) (*controlpb.ToJobManager, error) {
	switch m := m.(type) {
	case rpc.Register:
		p := registrationPB(m.Registration)
		p.Running = every(m.Running, attemptPB)
		return &controlpb.ToJobManager{Message: &controlpb.ToJobManager_Register{Register: p}}, nil
	case rpc.Heartbeat:
		return &controlpb.ToJobManager{Message: &controlpb.ToJobManager_Heartbeat{Heartbeat: &controlpb.Heartbeat{
			Epoch: uint64(m.Epoch), Tasks: every(m.Tasks, statsPB),
		}}}, nil
	case rpc.TaskStateChanged:
		return &controlpb.ToJobManager{Message: &controlpb.ToJobManager_TaskState{TaskState: &controlpb.TaskStateChanged{
			Attempt: attemptPB(m.Attempt), State: uint32(m.State), Failure: failurePB(m.Failure),
		}}}, nil
	case rpc.AcknowledgeCheckpoint:
		return &controlpb.ToJobManager{Message: &controlpb.ToJobManager_Acknowledge{Acknowledge: &controlpb.Acknowledge{
			Attempt: attemptPB(m.Attempt), Checkpoint: int64(m.Checkpoint), Finished: m.State.Finished,
			Operators: every(m.State.Operators, operatorStatePB), Channels: every(m.State.Channels, channelStatePB),
			Metrics: checkpointMetricsPB(m.Metrics),
		}}}, nil
	case rpc.DeclineCheckpoint:
		return &controlpb.ToJobManager{Message: &controlpb.ToJobManager_Decline{Decline: &controlpb.Decline{
			Attempt: attemptPB(m.Attempt), Checkpoint: int64(m.Checkpoint), Reason: uint32(m.Reason), Message: m.Message,
		}}}, nil
	case rpc.EndOfData:
		return &controlpb.ToJobManager{Message: &controlpb.ToJobManager_EndOfData{EndOfData: &controlpb.EndOfData{Attempt: attemptPB(m.Attempt)}}}, nil
	case rpc.BarrierSent:
		return &controlpb.ToJobManager{Message: &controlpb.ToJobManager_BarrierSent{BarrierSent: &controlpb.BarrierSent{
			Attempt: attemptPB(m.Attempt), Operator: m.Operator[:], Checkpoint: int64(m.Checkpoint),
		}}}, nil
	case rpc.OperatorEvent:
		return &controlpb.ToJobManager{Message: &controlpb.ToJobManager_OperatorEvent{OperatorEvent: eventPB(m)}}, nil
	case rpc.OperatorEventAck:
		return &controlpb.ToJobManager{Message: &controlpb.ToJobManager_OperatorEventAck{OperatorEventAck: &controlpb.OperatorEventAck{
			Attempt: attemptPB(m.Attempt), Seq: m.Seq, Error: m.Error,
		}}}, nil
	default:
		return nil, fmt.Errorf("a task manager does not send %T", m)
	}
}

// fromTaskManager is the inverse of toJobManager, with checks.
func fromTaskManager(p *controlpb.ToJobManager) (rpc.Message, error) {
	switch p := p.GetMessage().(type) {
	case *controlpb.ToJobManager_Register:
		return registerOf(p.Register)
	case *controlpb.ToJobManager_Heartbeat:
		tasks, err := each(p.Heartbeat.GetTasks(), statsOf)
		return rpc.Heartbeat{Epoch: weir.LeaderEpoch(p.Heartbeat.GetEpoch()), Tasks: tasks}, err
	case *controlpb.ToJobManager_TaskState:
		return taskStateOf(p.TaskState)
	case *controlpb.ToJobManager_Acknowledge:
		return acknowledgeOf(p.Acknowledge)
	case *controlpb.ToJobManager_Decline:
		a, err := attemptOf(p.Decline.GetAttempt())
		if err != nil {
			return nil, err
		}
		reason, err := enum("decline reason", p.Decline.GetReason(), weir.TriggerCheckpointFailure)
		return rpc.DeclineCheckpoint{Attempt: a, Checkpoint: weir.CheckpointID(p.Decline.GetCheckpoint()), Reason: reason, Message: p.Decline.GetMessage()}, err
	case *controlpb.ToJobManager_EndOfData:
		a, err := attemptOf(p.EndOfData.GetAttempt())
		return rpc.EndOfData{Attempt: a}, err
	case *controlpb.ToJobManager_BarrierSent:
		a, err := attemptOf(p.BarrierSent.GetAttempt())
		if err != nil {
			return nil, err
		}
		op, err := id16("operator id", p.BarrierSent.GetOperator())
		return rpc.BarrierSent{Attempt: a, Operator: weir.OperatorID(op), Checkpoint: weir.CheckpointID(p.BarrierSent.GetCheckpoint())}, err
	case *controlpb.ToJobManager_OperatorEvent:
		return eventOf(p.OperatorEvent)
	case *controlpb.ToJobManager_OperatorEventAck:
		a, err := attemptOf(p.OperatorEventAck.GetAttempt())
		return rpc.OperatorEventAck{Attempt: a, Seq: p.OperatorEventAck.GetSeq(), Error: p.OperatorEventAck.GetError()}, err
	}
	return nil, fmt.Errorf("unknown message %T", p.GetMessage())
}

// toTaskManager turns what the JobManager says into its message.
func toTaskManager(m rpc.Message) (*controlpb.ToTaskManager, error) {
	switch m := m.(type) {
	case rpc.Registered:
		return &controlpb.ToTaskManager{Message: &controlpb.ToTaskManager_Registered{Registered: &controlpb.Registered{
			Epoch: uint64(m.Epoch), HeartbeatInterval: int64(m.HeartbeatInterval), HeartbeatTimeout: int64(m.HeartbeatTimeout),
		}}}, nil
	case rpc.Refused:
		return &controlpb.ToTaskManager{Message: &controlpb.ToTaskManager_Refused{Refused: &controlpb.Refused{Reason: m.Reason}}}, nil
	case rpc.Deploy:
		return &controlpb.ToTaskManager{Message: &controlpb.ToTaskManager_Deploy{Deploy: deployPB(m.Deployment)}}, nil
	case rpc.Cancel:
		return &controlpb.ToTaskManager{Message: &controlpb.ToTaskManager_Cancel{Cancel: &controlpb.Cancel{Attempt: attemptPB(m.Attempt)}}}, nil
	case rpc.TriggerCheckpoint:
		return &controlpb.ToTaskManager{Message: &controlpb.ToTaskManager_Trigger{Trigger: &controlpb.TriggerCheckpoint{
			Attempt: attemptPB(m.Attempt), Barrier: barrierPB(m.Barrier),
		}}}, nil
	case rpc.NotifyCheckpointComplete:
		return &controlpb.ToTaskManager{Message: &controlpb.ToTaskManager_NotifyComplete{NotifyComplete: &controlpb.NotifyComplete{
			Attempt: attemptPB(m.Attempt), Checkpoint: int64(m.Checkpoint), Subsumed: int64(m.Subsumed),
		}}}, nil
	case rpc.NotifyCheckpointAborted:
		return &controlpb.ToTaskManager{Message: &controlpb.ToTaskManager_NotifyAborted{NotifyAborted: &controlpb.NotifyAborted{
			Attempt: attemptPB(m.Attempt), Checkpoint: int64(m.Checkpoint), LatestCompleted: int64(m.LatestCompleted),
		}}}, nil
	case rpc.Forget:
		return &controlpb.ToTaskManager{Message: &controlpb.ToTaskManager_Forget{Forget: &controlpb.Forget{Attempt: attemptPB(m.Attempt)}}}, nil
	case rpc.HeartbeatAck:
		return &controlpb.ToTaskManager{Message: &controlpb.ToTaskManager_HeartbeatAck{HeartbeatAck: &controlpb.HeartbeatAck{}}}, nil
	case rpc.OperatorEvent:
		return &controlpb.ToTaskManager{Message: &controlpb.ToTaskManager_OperatorEvent{OperatorEvent: eventPB(m)}}, nil
	default:
		return nil, fmt.Errorf("a job manager does not send %T", m)
	}
}

// fromJobManager is the inverse of toTaskManager, with checks.
func fromJobManager(p *controlpb.ToTaskManager) (rpc.Message, error) {
	switch p := p.GetMessage().(type) {
	case *controlpb.ToTaskManager_Registered:
		return rpc.Registered{
			Epoch:             weir.LeaderEpoch(p.Registered.GetEpoch()),
			HeartbeatInterval: time.Duration(p.Registered.GetHeartbeatInterval()),
			HeartbeatTimeout:  time.Duration(p.Registered.GetHeartbeatTimeout()),
		}, nil
	case *controlpb.ToTaskManager_Refused:
		return rpc.Refused{Reason: p.Refused.GetReason()}, nil
	case *controlpb.ToTaskManager_Deploy:
		d, err := deployOf(p.Deploy)
		return rpc.Deploy{Deployment: d}, err
	case *controlpb.ToTaskManager_Cancel:
		a, err := attemptOf(p.Cancel.GetAttempt())
		return rpc.Cancel{Attempt: a}, err
	case *controlpb.ToTaskManager_Trigger:
		a, err := attemptOf(p.Trigger.GetAttempt())
		if err != nil {
			return nil, err
		}
		b, err := barrierOf(p.Trigger.GetBarrier())
		return rpc.TriggerCheckpoint{Attempt: a, Barrier: b}, err
	case *controlpb.ToTaskManager_NotifyComplete:
		a, err := attemptOf(p.NotifyComplete.GetAttempt())
		return rpc.NotifyCheckpointComplete{Attempt: a, Checkpoint: weir.CheckpointID(p.NotifyComplete.GetCheckpoint()), Subsumed: weir.CheckpointID(p.NotifyComplete.GetSubsumed())}, err
	case *controlpb.ToTaskManager_NotifyAborted:
		a, err := attemptOf(p.NotifyAborted.GetAttempt())
		return rpc.NotifyCheckpointAborted{Attempt: a, Checkpoint: weir.CheckpointID(p.NotifyAborted.GetCheckpoint()), LatestCompleted: weir.CheckpointID(p.NotifyAborted.GetLatestCompleted())}, err
	case *controlpb.ToTaskManager_Forget:
		a, err := attemptOf(p.Forget.GetAttempt())
		return rpc.Forget{Attempt: a}, err
	case *controlpb.ToTaskManager_HeartbeatAck:
		return rpc.HeartbeatAck{}, nil
	case *controlpb.ToTaskManager_OperatorEvent:
		return eventOf(p.OperatorEvent)
	}
	return nil, fmt.Errorf("unknown message %T", p.GetMessage())
}

func registrationPB(r rpc.Registration) *controlpb.Register {
	return &controlpb.Register{
		Id: r.ID[:], Incarnation: uint64(r.Incarnation), DataAddress: r.DataAddress, Host: r.Host,
		CodeId: r.CodeID, Slots: int32(r.Slots), Memory: r.Memory, MetricsAddress: r.MetricsAddress,
	}
}

func registrationOf(p *controlpb.Register) (rpc.Registration, error) {
	id, err := id16("task manager id", p.GetId())
	if err != nil {
		return rpc.Registration{}, err
	}
	if p.GetSlots() < 0 {
		return rpc.Registration{}, fmt.Errorf("registration offers %d slots", p.GetSlots())
	}
	return rpc.Registration{
		ID: weir.TaskManagerID(id), Incarnation: weir.Incarnation(p.GetIncarnation()), DataAddress: p.GetDataAddress(), Host: p.GetHost(),
		CodeID: p.GetCodeId(), Slots: int(p.GetSlots()), Memory: p.GetMemory(), MetricsAddress: p.GetMetricsAddress(),
	}, nil
}

func registerOf(p *controlpb.Register) (rpc.Message, error) {
	r, err := registrationOf(p)
	if err != nil {
		return nil, err
	}
	running, err := each(p.GetRunning(), attemptOf)
	return rpc.Register{Registration: r, Running: running}, err
}

func statsPB(s rpc.TaskStats) *controlpb.TaskStats {
	return &controlpb.TaskStats{
		Attempt: attemptPB(s.Attempt), RecordsIn: s.RecordsIn, RecordsOut: s.RecordsOut, BytesIn: s.BytesIn, BytesOut: s.BytesOut,
		Busy: s.BusyRatio, BackPressured: s.BackPressured, Idle: s.IdleRatio,
		BytesQueuedOut: s.BytesQueuedOut, BytesQueuedIn: s.BytesQueuedIn, BuffersInUse: s.BuffersInUse,
		SoftBackPressured: s.SoftBackPressured, HardBackPressured: s.HardBackPressured, OutPoolUsage: s.OutPoolUsage, InPoolUsage: s.InPoolUsage,
	}
}

func statsOf(p *controlpb.TaskStats) (rpc.TaskStats, error) {
	a, err := attemptOf(p.GetAttempt())
	return rpc.TaskStats{
		Attempt: a, RecordsIn: p.GetRecordsIn(), RecordsOut: p.GetRecordsOut(), BytesIn: p.GetBytesIn(), BytesOut: p.GetBytesOut(),
		BusyRatio: p.GetBusy(), BackPressured: p.GetBackPressured(), IdleRatio: p.GetIdle(),
		BytesQueuedOut: p.GetBytesQueuedOut(), BytesQueuedIn: p.GetBytesQueuedIn(), BuffersInUse: p.GetBuffersInUse(),
		SoftBackPressured: p.GetSoftBackPressured(), HardBackPressured: p.GetHardBackPressured(), OutPoolUsage: p.GetOutPoolUsage(), InPoolUsage: p.GetInPoolUsage(),
	}, err
}

func taskStateOf(p *controlpb.TaskStateChanged) (rpc.Message, error) {
	a, err := attemptOf(p.GetAttempt())
	if err != nil {
		return nil, err
	}
	state, err := enum("task state", p.GetState(), rpc.TaskFailed)
	if err != nil {
		return nil, err
	}
	f, err := failureOf(p.GetFailure())
	return rpc.TaskStateChanged{Attempt: a, State: state, Failure: f}, err
}

func acknowledgeOf(p *controlpb.Acknowledge) (rpc.Message, error) {
	a, err := attemptOf(p.GetAttempt())
	if err != nil {
		return nil, err
	}
	ops, err := each(p.GetOperators(), operatorStateOf)
	if err != nil {
		return nil, err
	}
	channels, err := each(p.GetChannels(), channelStateOf)
	return rpc.AcknowledgeCheckpoint{
		Attempt: a, Checkpoint: weir.CheckpointID(p.GetCheckpoint()),
		State:   weir.TaskStateSnapshot{Operators: ops, Channels: channels, Finished: p.GetFinished()},
		Metrics: checkpointMetricsOf(p.GetMetrics()),
	}, err
}

func eventPB(m rpc.OperatorEvent) *controlpb.OperatorEvent {
	return &controlpb.OperatorEvent{Attempt: attemptPB(m.Attempt), Operator: m.Operator[:], Seq: m.Seq, Event: m.Event}
}

func eventOf(p *controlpb.OperatorEvent) (rpc.Message, error) {
	a, err := attemptOf(p.GetAttempt())
	if err != nil {
		return nil, err
	}
	op, err := id16("operator id", p.GetOperator())
	return rpc.OperatorEvent{Attempt: a, Operator: weir.OperatorID(op), Seq: p.GetSeq(), Event: p.GetEvent()}, err
}
