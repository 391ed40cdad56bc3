package checkpointing

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/planted"
)

// AckResult is what became of an acknowledgement (behaviour §5.2).
type AckResult uint8

// Results of acknowledgements.
const (
	AckSuccess   AckResult = iota // it was awaited, and its state is the checkpoint's now
	AckDuplicate                  // it was there already; its state is left alone
	AckUnknown                    // nobody waits for this attempt; its state is to be discarded
	AckDiscarded                  // the checkpoint was disposed of; likewise
)

func (r AckResult) String() string {
	return [...]string{"SUCCESS", "DUPLICATE", "UNKNOWN", "DISCARDED"}[min(int(r), 3)]
}

// stage is how far a pending checkpoint has come.
type stage uint8

const (
	atLocation     stage = iota // the location of a savepoint is prepared
	atCoordinators              // operator coordinators snapshot
	atHooks                     // master hooks are called
	atTasks                     // tasks snapshot
	atMetadata                  // the metadata file is being written
	beforeLink                  // it is written; another link is under way
	atLink                      // its link is being added: it cannot be aborted any more
)

var stageNames = [...]string{"the location", "operator coordinators", "master hooks", "tasks", "the metadata file", "the link of another checkpoint", "the link"}

// PendingCheckpoint collects what a checkpoint needs. Only its coordinator calls it.
type PendingCheckpoint struct {
	id        weir.CheckpointID
	kind      weir.SnapshotKind
	request   RequestID
	location  string // where its files go
	plan      *CheckpointPlan
	triggered time.Time
	timeline  Timeline
	stage     stage
	disposed  bool // aborted: nothing is accepted any more
	expires   bool // its expiry timer is armed

	index    attemptIndex // into what follows, which is ordered as plan.Wait
	states   []TaskState
	subtasks []SubtaskStatistics
	acked    []bool
	missing  int // attempts that have not acknowledged

	coordinators        []CoordinatorState
	coordinatorAcked    []bool
	coordinatorsMissing int

	hooks        []HookState
	hookAcked    []bool
	hooksMissing int

	// strays is in-flight data of attempts that nobody waits for. Its files may be
	// shared with subtasks that we wait for, so it is kept until the end.
	strays []TaskState

	stateBytes, newBytes, persistedBytes int64

	unaligned bool   // a subtask's snapshot did not wait for all barriers
	metadata  string // blob name, once written
	bytes     int64  // of the snapshot, once written
}

// NewPendingCheckpoint returns one that waits for the plan's attempts and for these
// operators' coordinators, and for no master hook.
func NewPendingCheckpoint(id weir.CheckpointID, kind weir.SnapshotKind, plan *CheckpointPlan, operators []weir.OperatorID, now time.Time) *PendingCheckpoint {
	n := len(plan.Wait)
	p := &PendingCheckpoint{
		id: id, kind: kind, plan: plan, triggered: now, location: fmt.Sprintf("chk-%d", id),
		index:  indexAttempts(plan.Wait),
		states: make([]TaskState, n), subtasks: make([]SubtaskStatistics, n), acked: make([]bool, n), missing: n,
		coordinators:        make([]CoordinatorState, len(operators)),
		coordinatorAcked:    make([]bool, len(operators)),
		coordinatorsMissing: len(operators),
	}
	for i, a := range plan.Wait {
		p.states[i].Attempt, p.subtasks[i].Attempt = a, a
	}
	for i, op := range operators {
		p.coordinators[i].Operator = op
	}
	return p
}

// ID is its checkpoint.
func (p *PendingCheckpoint) ID() weir.CheckpointID { return p.id }

// FullyAcknowledged says that nothing is missing and that it was not disposed of.
func (p *PendingCheckpoint) FullyAcknowledged() bool {
	if planted.Is(planted.CompletedOneEarly) {
		return p.missing <= 1 && p.coordinatorsMissing == 0 && p.hooksMissing == 0 && !p.disposed
	}
	return p.missing == 0 && p.coordinatorsMissing == 0 && p.hooksMissing == 0 && !p.disposed
}

// Awaits says whether the attempt's acknowledgement is missing.
func (p *PendingCheckpoint) Awaits(a weir.AttemptID) bool {
	i, ok := p.index.find(a)
	return ok && !p.acked[i]
}

// Acknowledge takes an attempt's part.
func (p *PendingCheckpoint) Acknowledge(now time.Time, a weir.AttemptID, state weir.TaskStateSnapshot, m weir.CheckpointMetrics) AckResult {
	i, known := p.index.find(a)
	switch {
	case known && p.acked[i]:
		return AckDuplicate // also of a disposed one: its state was discarded with it
	case p.disposed:
		return AckDiscarded
	case !known:
		return AckUnknown
	}
	p.acked[i] = true
	p.missing--
	p.states[i].State = state
	p.subtasks[i].Acknowledged = max(now.Sub(p.triggered), 1)
	p.subtasks[i].Metrics = m
	p.stateBytes += m.StateBytes
	p.newBytes += m.StateBytes
	p.persistedBytes += m.PersistedBytes
	p.unaligned = p.unaligned || m.Unaligned
	if p.timeline.FirstAck.IsZero() {
		p.timeline.FirstAck = now
	}
	p.timeline.LastAck = now
	return AckSuccess
}

// AcknowledgeCoordinator takes an operator coordinator's part.
func (p *PendingCheckpoint) AcknowledgeCoordinator(op weir.OperatorID, state []byte) AckResult {
	i := slices.IndexFunc(p.coordinators, func(c CoordinatorState) bool { return c.Operator == op })
	switch {
	case p.disposed:
		return AckDiscarded
	case i < 0:
		return AckUnknown
	case p.coordinatorAcked[i]:
		return AckDuplicate
	}
	p.coordinatorAcked[i] = true
	p.coordinatorsMissing--
	p.coordinators[i].State = state
	return AckSuccess
}

// AcknowledgeHook takes a master hook's part. Unlike others it may be repeated.
func (p *PendingCheckpoint) AcknowledgeHook(hook string, state []byte) AckResult {
	i := slices.IndexFunc(p.hooks, func(h HookState) bool { return h.Hook == hook })
	switch {
	case p.disposed:
		return AckDiscarded
	case i < 0:
		return AckUnknown
	case p.hookAcked[i]:
		return AckSuccess
	}
	p.hookAcked[i] = true
	p.hooksMissing--
	p.hooks[i].State = state
	return AckSuccess
}

// dispose ends it and returns the states that were acknowledged and lie in files.
func (p *PendingCheckpoint) dispose() []TaskState {
	p.disposed = true
	var states []TaskState
	for _, s := range p.states {
		if hasFiles(s.State) {
			states = append(states, s)
		}
	}
	return append(states, p.strays...)
}

// keepStray takes the in-flight data of an attempt that nobody waits for, and returns
// the rest of its state, which belongs to nobody.
func (p *PendingCheckpoint) keepStray(a weir.AttemptID, state weir.TaskStateSnapshot) weir.TaskStateSnapshot {
	if channels := (weir.TaskStateSnapshot{Channels: state.Channels}); hasFiles(channels) {
		p.strays = append(p.strays, TaskState{a, channels})
	}
	state.Channels = nil
	return state
}

// lacking names at most a few of those who are missing, for messages.
func (p *PendingCheckpoint) lacking() string {
	switch p.stage {
	case atLocation:
		return stageNames[p.stage]
	case atCoordinators:
		return fmt.Sprintf("%d of %d operator coordinators", p.coordinatorsMissing, len(p.coordinators))
	case atHooks:
		return fmt.Sprintf("%d of %d master hooks", p.hooksMissing, len(p.hooks))
	}
	var missing []weir.AttemptID
	for i, a := range p.plan.Wait {
		if !p.acked[i] {
			missing = append(missing, a)
		}
	}
	if len(missing) == 0 {
		return stageNames[p.stage]
	}
	return fmt.Sprintf("%d of %d tasks: %s", len(missing), len(p.plan.Wait), attempts(missing))
}

// statistics is a copy of where it stands.
func (p *PendingCheckpoint) statistics(now time.Time) CheckpointStatistics {
	return CheckpointStatistics{
		ID: p.id, Kind: p.kind, Status: InProgress, Triggered: p.triggered, Duration: now.Sub(p.triggered), Timeline: p.timeline,
		Bytes: p.stateBytes, NewBytes: p.newBytes, PersistedBytes: p.persistedBytes, Unaligned: p.unaligned,
		Tasks: len(p.plan.Wait), Acknowledged: len(p.plan.Wait) - p.missing, Subtasks: p.subtasks,
	}
}
