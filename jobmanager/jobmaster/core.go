package jobmaster

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/jobmanager/checkpointing"
	"github.com/weirflow/weir/jobmanager/execgraph"
	"github.com/weirflow/weir/jobmanager/failover"
	"github.com/weirflow/weir/jobmanager/opcoord"
	"github.com/weirflow/weir/jobmanager/scheduling"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/snapshotmeta"
)

// phase is where the current run stands.
type phase uint8

const (
	waiting phase = iota // for Start
	stopping
	preparing
	deploying
	running
	ended
)

// goal is what the job stops for.
type goal uint8

const (
	toRestart goal = iota
	toFail
	toCancel
)

// Core is everything that is decided about one job. Only the job's loop calls it.
type Core struct {
	spec    *Spec
	sources []source
	regions [][]int // by vertex: the vertices that restart with it
	aligns  []bool  // by vertex: barriers into it do not overtake data (behaviour §17)

	graph       *execgraph.Graph
	scheduler   *scheduling.Scheduler
	coordinator *checkpointing.CheckpointCoordinator
	strategy    failover.RestartStrategy
	holders     []*opcoord.Holder // by source
	// coordinators is by source the run whose coordinator is current, 0: none.
	coordinators []uint64

	phase    phase
	goal     goal   // valid while stopping
	run      uint64 // numbers runs
	affected []bool // by vertex: part of the current run
	everRan  bool   // all tasks ran at some time
	status   rpc.JobStatus
	detail   string
	restarts int
	failure  *weir.Failure // the last one, or what the job ended with

	timers       uint64                         // numbers timers
	restartTimer uint64                         // the one that is armed, 0: none
	slotTimer    uint64                         // the one that is armed, 0: none
	request      uint64                         // numbers requests for slots
	addresses    map[execgraph.Location]string  // data addresses, by TaskManager (slot 0)
	loading      bool                           // the snapshot of this run
	restored     *restoration                   // what this run starts from, or nil
	hooks        []string                       // names of the master hooks
	hooking      map[string]bool                // hooks that this run waits for
	starting     map[weir.OperatorID]bool       // coordinators that this run waits for
	splits       map[weir.OperatorID][][][]byte // what they assigned
	restoredFrom string                         // for people
	whyRestored  string                         // for people: why from that
	restoredID   weir.CheckpointID              // what the last run started from

	lastRequest checkpointing.RequestID            // numbers requests for snapshots
	requests    map[checkpointing.RequestID]string // those under way, by whom
	stop        *ongoingStop                       // under way, or nil
	stopped     *StopEnded                         // how the stop went with which the job ended
	atEnd       map[weir.AttemptID]bool            // have reached the end of their data
	lastAsked   bool                               // in this run, for the last checkpoint
	lastPause   time.Duration                      // before it is asked for again
	lastTimer   uint64                             // the one that is armed, 0: none

	now time.Time
	out []Action
}

// NewCore returns the core of a job that was not started yet.
func NewCore(spec *Spec) *Core {
	c := &Core{
		spec:         spec,
		sources:      spec.sources(),
		regions:      failover.Regions(spec.Graph),
		aligns:       spec.Graph.Aligning(),
		graph:        execgraph.New(spec.Job, spec.Epoch, spec.Graph),
		scheduler:    scheduling.New(spec.Graph),
		strategy:     failover.New(spec.Settings.Restart),
		coordinators: make([]uint64, len(spec.sources())),
		affected:     make([]bool, len(spec.Graph.Vertices)),
		addresses:    make(map[execgraph.Location]string),
		starting:     make(map[weir.OperatorID]bool),
		splits:       make(map[weir.OperatorID][][][]byte),
		requests:     make(map[checkpointing.RequestID]string),
		atEnd:        make(map[weir.AttemptID]bool),
		status:       rpc.JobInitializing,
	}
	var operators []weir.OperatorID
	for _, s := range c.sources {
		operators = append(operators, s.id)
		c.holders = append(c.holders, opcoord.NewHolder(s.id, s.name, spec.Graph.Vertices[s.vertex].Parallelism))
	}
	c.hooks = jobgraph.HooksOf(spec.GraphText)
	c.coordinator = checkpointing.New(checkpointing.Config{
		Job: spec.Job, Options: spec.Settings.Checkpointing, Operators: operators, Rand: spec.Rand, Hooks: c.hooks,
	})
	return c
}

// Step takes an event and returns what to do, in order.
func (c *Core) Step(now time.Time, ev Event) []Action {
	c.now, c.out = now, nil
	c.take(ev)
	c.advance()
	out := c.out
	c.out = nil
	return out
}

func (c *Core) take(ev Event) {
	switch e := ev.(type) {
	case Start:
		c.start(e)
	case CancelRequested:
		c.cancel()
	case SnapshotRequested:
		c.snapshotRequested(e)
	case StopRequested:
		c.stopRequested(e)
	case StopRecorded:
		c.stopRecorded(e)
	case DataEnded:
		c.dataEnded(e)
	case SlotsGranted:
		c.slotsGranted(e)
	case SlotsShort:
		c.slotsShort(e)
	case TaskManagerLost:
		c.taskManagerLost(e)
	case TaskState:
		c.taskState(e)
	case TimerFired:
		c.timerFired(e.Key)
	case SnapshotLoaded:
		c.snapshotLoaded(e)
	case SnapshotUnreadable:
		if c.loading && e.Run == c.run {
			c.loading = false
			c.fail(&e.Failure, nil)
		}
	case CoordinatorStarted:
		c.coordinatorStarted(e)
	case CoordinatorBroke:
		c.coordinatorBroke(e)
	case HookRestored:
		if e.Run == c.run {
			delete(c.hooking, e.Hook)
		}
	case HookBroke:
		c.fail(&e.Failure, nil)
	case Checkpointing:
		c.checkpoint(e.Event)
	case Coordination:
		c.coordination(e)
	}
}

// advance goes on to the next phase whenever what a phase waits for is there.
func (c *Core) advance() {
	for {
		before := c.phase
		switch c.phase {
		case stopping:
			c.tryRestart()
		case preparing:
			c.tryDeploy()
		case deploying, running:
			c.tryRun()
			c.tryStop()
		}
		if c.phase == before {
			return
		}
	}
}

func (c *Core) start(e Start) {
	if c.phase != waiting {
		c.note("started already")
		return
	}
	c.restarts, c.everRan = e.Restarts, e.Resumed
	if e.Stop != nil {
		c.resumeStop(*e.Stop, e.Completed)
	}
	c.checkpoint(checkpointing.Restored{Completed: e.Completed})
	if e.Resumed {
		c.setStatus(rpc.JobRestarting, "")
	} else {
		c.setStatus(rpc.JobCreated, "")
	}
	c.affect(nil)
	c.prepare()
}

func (c *Core) timerFired(key TimerKey) {
	switch {
	case key.Kind == CheckpointTimer:
		c.checkpoint(checkpointing.TimerFired{Key: key.Checkpoint})
	case key.Kind == RestartTimer && key.N == c.restartTimer:
		c.restartTimer = 0
	case key.Kind == LastTimer && key.N == c.lastTimer:
		c.lastTimer, c.lastAsked = 0, false
		c.finalCheckpoint()
	case key.Kind == SlotTimer && key.N == c.slotTimer:
		c.slotTimer = 0
		c.slotTimeout()
	default:
		c.note("timer %s is not armed", key)
	}
}

// affect adds vertices to the current run; nil means all.
func (c *Core) affect(vertices []int) {
	for v := range c.affected {
		if vertices == nil || slices.Contains(vertices, v) {
			c.affected[v] = true
		}
	}
}

// setStatus records a status, if it is another.
func (c *Core) setStatus(s rpc.JobStatus, detail string) {
	if c.status == s && c.detail == detail {
		return
	}
	c.status, c.detail = s, detail
	c.emit(SetStatus{Status: s, Detail: detail, Restarts: c.restarts, Failure: c.failure})
}

func (c *Core) armTimer(kind TimerKind, after time.Duration) uint64 {
	c.timers++
	c.emit(ArmTimer{Key: TimerKey{Kind: kind, N: c.timers}, At: c.now.Add(after)})
	return c.timers
}

func (c *Core) cancelTimer(kind TimerKind, n *uint64) {
	if *n != 0 {
		c.emit(CancelTimer{Key: TimerKey{Kind: kind, N: *n}})
		*n = 0
	}
}

func (c *Core) emit(a Action) { c.out = append(c.out, a) }

func (c *Core) note(format string, args ...any) {
	c.emit(Note{Text: fmt.Sprintf(format, args...)})
}

// restoration is the snapshot that a run starts from.
type restoration struct {
	snapshot     *snapshotmeta.Snapshot
	coordinators map[weir.OperatorID][]byte
	// shares is each operator's state by new subtask, made when first needed.
	shares   map[weir.OperatorID][]weir.OperatorSubtaskState
	flying   []exchange
	finished []bool // by vertex: has nothing left to do; made when first needed
	// recovered is in-flight data by vertex and new subtask, made when first needed.
	recovered [][][]rpc.RecoveredChannel
}

// sourceAt is the source operator of a vertex.
func (c *Core) sourceAt(vertex int32) (weir.OperatorID, bool) {
	for _, s := range c.sources {
		if s.vertex == int(vertex) {
			return s.id, true
		}
	}
	return weir.OperatorID{}, false
}
