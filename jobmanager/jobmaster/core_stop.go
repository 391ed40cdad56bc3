package jobmaster

import (
	"fmt"
	"strings"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobmanager/checkpointing"
	"github.com/weirflow/weir/jobmanager/execgraph"
	"github.com/weirflow/weir/jobmanager/failover"
	"github.com/weirflow/weir/rpc"
)

// Stop is what a stop-with-savepoint wants.
type Stop struct {
	Request   string
	Kind      weir.SnapshotKind // SuspendSavepoint or TerminateSavepoint
	Directory string            // where the savepoint's own directory is made, absolute
}

// stopStage is how far a stop has come.
type stopStage uint8

const (
	stopRecording stopStage = iota // the wish is being recorded
	stopWaiting                    // for all tasks to run
	stopSaving                     // the savepoint is under way
	stopEnding                     // it is complete: the tasks end
	stopUndone                     // it is over, and the job is not; that is being recorded
)

// ongoingStop is a stop-with-savepoint that is under way (behaviour §12).
//
//  1. The wish is recorded, so that another leader goes on with it.
//  2. Once all tasks run, the periodic scheduler is stopped and a synchronous savepoint
//     taken. It is a link of the chain before anybody hears of it, so whatever fails
//     from then on restarts from it.
//  3. Tasks that have heard of it end. When all have, so does the job.
//
// What fails in between undoes the stop: if no task was told of the savepoint, the job
// just goes on; else its sources have stopped reading, and all tasks are restarted. That
// the stop has failed is recorded before anybody is told, so a repeated request gets the
// same answer from any leader.
type ongoingStop struct {
	Stop
	stage     stopStage
	asked     checkpointing.RequestID // of the savepoint, in stopSaving
	triggered bool                    // tasks were told of the savepoint
	outcome   StopEnded               // in stopEnding and stopUndone
}

// stopRequested begins a stop.
func (c *Core) stopRequested(e StopRequested) {
	refuse := func(format string, args ...any) {
		c.emit(StopEnded{Request: e.Stop.Request, Refused: true, Failure: fmt.Sprintf(format, args...)})
	}
	switch {
	case c.stop != nil && c.stop.Request == e.Stop.Request:
		c.note("%s again", e)
	case c.stop != nil:
		refuse("the job is being stopped already, by request %q", c.stop.Request)
	case c.phase != running:
		refuse("the job does not run, it is %s", c.status)
	default:
		c.stop = &ongoingStop{Stop: e.Stop}
		c.emit(RecordStop{Stop: e.Stop})
	}
}

// resumeStop goes on with a stop that another leader began. If that one's savepoint is
// complete, the job has restarted from it, and an answer names it whatever comes.
func (c *Core) resumeStop(s Stop, completed []checkpointing.CompletedCheckpoint) {
	c.stop = &ongoingStop{Stop: s, stage: stopWaiting}
	if len(completed) == 0 {
		return
	}
	latest := completed[len(completed)-1]
	if latest.Kind.IsSynchronous() && strings.Contains(latest.Metadata, "/"+SavepointPrefix(c.spec.Job, s.Request)+"-") {
		c.stop.outcome = StopEnded{Request: s.Request, Checkpoint: latest.ID, Metadata: latest.Metadata}
	}
}

// stopRecorded goes on once the wish, or its failure, is recorded. If it cannot be, since
// the job has ended meanwhile, there is no stop.
func (c *Core) stopRecorded(e StopRecorded) {
	switch {
	case c.stop == nil || c.stop.Request != e.Request:
		c.note("%s, which is not awaited", e)
	case c.stop.stage == stopUndone:
		outcome := c.stop.outcome
		c.stop = nil
		c.emit(outcome)
		c.finalCheckpoint()
	case c.stop.stage == stopRecording && e.Failure != "":
		c.stop = nil
		c.emit(StopEnded{Request: e.Request, Refused: true, Failure: e.Failure})
	case c.stop.stage == stopRecording:
		c.stop.stage = stopWaiting
	}
}

// tryStop takes the savepoint of a stop as soon as all tasks run.
func (c *Core) tryStop() {
	if c.stop == nil || c.stop.stage != stopWaiting || c.phase != running {
		return
	}
	s := c.stop
	s.stage, s.asked = stopSaving, c.nextRequest()
	c.checkpoint(checkpointing.TasksStopped{})
	c.checkpoint(checkpointing.Requested{Request: s.asked, Kind: s.Kind, Location: c.savepointLocation(s.Directory, s.Request)})
}

// stopSnapshotEnded takes the end of the savepoint.
func (c *Core) stopSnapshotEnded(a checkpointing.RequestEnded) {
	s := c.stop
	s.asked = 0
	if a.Reason == weir.ReasonNone {
		s.stage = stopEnding
		s.outcome = StopEnded{Request: s.Request, Checkpoint: a.Checkpoint, Metadata: a.Metadata}
		if c.phase != running { // it was being linked when a task failed
			c.undoStop(c.failureText())
		}
		return
	}
	why := a.Reason.String()
	if a.Message != "" {
		why += ": " + a.Message
	}
	switch {
	case c.phase == stopping && c.goal == toCancel:
		why = "the job was cancelled"
	case c.phase == stopping:
		why = c.failureText()
	}
	if s.outcome.Metadata == "" {
		why = "there is no savepoint: " + why
	}
	c.undoStop(why)
	switch {
	case c.phase != running:
	case c.graph.Count(execgraph.Failed) > 0:
		// A task has failed. What becomes of the job is decided about that, next.
	case !s.triggered:
		c.lastAsked = false
		c.checkpoint(checkpointing.TasksRunning{})
	default:
		// The strategy is not asked: it is no fault of the job, and it must not end of it.
		c.failOver(&weir.Failure{Message: "stop with savepoint failed: " + why, Subtask: -1}, nil, failover.Decision{Restart: true})
	}
}

// stopFailing undoes a stop because the job fails or is cancelled, and says whether all
// of the job must be restarted then. What becomes of the savepoint is said by its own end.
func (c *Core) stopFailing(why string) (all bool) {
	if c.stop == nil {
		return false
	}
	switch c.stop.stage {
	case stopSaving:
		return c.stop.triggered
	case stopEnding:
		c.undoStop(why)
		return true
	}
	return false
}

// undoStop gives a stop up.
func (c *Core) undoStop(why string) {
	s := c.stop
	s.stage = stopUndone
	s.outcome.Request, s.outcome.Failure = s.Request, why
	if c.phase == ended {
		return // endStop says so
	}
	c.emit(RecordStop{Stop: s.Stop, Checkpoint: s.outcome.Checkpoint, Metadata: s.outcome.Metadata, Failure: why})
}

// endStop answers a stop when the job has ended.
func (c *Core) endStop(status rpc.JobStatus) {
	s := c.stop
	if s == nil {
		return
	}
	c.stop = nil
	outcome := s.outcome
	outcome.Request = s.Request
	if status != rpc.JobFinished && outcome.Failure == "" {
		outcome.Failure = "the job is " + status.String()
	}
	if status == rpc.JobFinished && outcome.Metadata == "" {
		// It has ended by itself, or was restarted from a savepoint with which all was done.
		if latest, ok := c.coordinator.Latest(); ok && latest.Kind.IsSynchronous() {
			outcome.Checkpoint, outcome.Metadata = latest.ID, latest.Metadata
		} else {
			outcome.Failure = "the job has ended by itself before there was a savepoint"
		}
	}
	c.stopped = &outcome
	c.emit(outcome)
}

func (c *Core) failureText() string {
	if c.failure == nil {
		return statusError(c.status)
	}
	return c.failure.Error()
}
