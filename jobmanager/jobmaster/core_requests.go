package jobmaster

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/jobmanager/checkpointing"
	"github.com/weirflow/weir/jobmanager/execgraph"
	"github.com/weirflow/weir/rpc"
)

// snapshotRequested takes a snapshot because somebody asked for it.
func (c *Core) snapshotRequested(e SnapshotRequested) {
	why := ""
	switch {
	case c.phase != running:
		why = "the job does not run, it is " + c.status.String()
	case c.stop != nil:
		why = "the job is being stopped with a savepoint"
	}
	if why != "" {
		c.emit(SnapshotEnded{Request: e.Request, Reason: weir.NotAllRequiredTasksRunning, Message: why})
		return
	}
	id := c.nextRequest()
	c.requests[id] = e.Request
	ask := checkpointing.Requested{Request: id, Kind: e.Kind}
	if e.Kind.IsSavepoint() {
		ask.Location = c.savepointLocation(e.Directory, e.Request)
	}
	c.checkpoint(ask)
}

// SavepointPrefix is how the name of the directory of a job's savepoint begins that a
// request asked for. A leader that does not know the request any more finds it by that.
func SavepointPrefix(job weir.JobID, request string) string {
	sum := sha256.Sum256([]byte(request))
	return fmt.Sprintf("savepoint-%.6s-%x", job, sum[:4])
}

func (c *Core) nextRequest() checkpointing.RequestID {
	c.lastRequest++
	return c.lastRequest
}

// savepointLocation names a directory that is used once.
func (c *Core) savepointLocation(directory, request string) string {
	return fmt.Sprintf("%s/%s-%d-%d", directory, SavepointPrefix(c.spec.Job, request), c.spec.Epoch, c.lastRequest)
}

// requestEnded passes on how a snapshot that was asked for has ended.
func (c *Core) requestEnded(a checkpointing.RequestEnded) {
	if c.stop != nil && c.stop.asked == a.Request {
		c.stopSnapshotEnded(a)
		return
	}
	request, ok := c.requests[a.Request]
	if !ok {
		c.note("%s, which nobody asked for", a)
		return
	}
	delete(c.requests, a.Request)
	c.emit(SnapshotEnded{
		Request: request, Checkpoint: a.Checkpoint, Metadata: a.Metadata, Bytes: a.Bytes, Reason: a.Reason, Message: a.Message,
	})
}

// dataEnded notes that an attempt has reached the end of its data. When all have, what
// they wait for is a last checkpoint, which is taken at once (behaviour §13).
func (c *Core) dataEnded(e DataEnded) {
	if x, ok := c.graph.Find(e.Attempt); !ok || x.State.Final() {
		c.note("%s, which is gone", e)
		return
	}
	c.atEnd[e.Attempt] = true
	c.finalCheckpoint()
}

// finalCheckpoint asks for the last checkpoint if it is time.
func (c *Core) finalCheckpoint() {
	if c.phase != running || c.stop != nil || c.lastAsked || len(c.atEnd) == 0 {
		return
	}
	if len(c.atEnd)+c.graph.Count(execgraph.Finished) < c.graph.Total() {
		return // the cheap test: each of many tasks asks
	}
	left := 0
	for x := range c.graph.Executions() {
		switch {
		case x.State == execgraph.Finished:
		case c.atEnd[x.ID]:
			left++
		default:
			return
		}
	}
	if left > 0 {
		c.lastAsked = true
		c.checkpoint(checkpointing.EndOfData{})
	}
}

// Pauses between attempts at the last checkpoint: doubled with each.
const (
	firstLastPause = time.Second
	mostLastPause  = time.Minute
)

// lastMayHaveFailed asks for the last checkpoint again, after a while, if one has failed
// that may have been it.
func (c *Core) lastMayHaveFailed(s checkpointing.CheckpointStatistics) {
	if !c.lastAsked || s.Status != checkpointing.Failed || c.phase != running || c.stop != nil || c.lastTimer != 0 {
		return
	}
	c.lastPause = min(max(2*c.lastPause, firstLastPause), mostLastPause)
	c.lastTimer = c.armTimer(LastTimer, c.lastPause)
}

// forgetEnds forgets of attempts that are gone that they had reached the end of their data.
func (c *Core) forgetEnds() {
	c.lastAsked, c.lastPause = false, 0
	c.cancelTimer(LastTimer, &c.lastTimer)
	for id := range c.atEnd {
		if x, ok := c.graph.Find(id); !ok || x.State.Final() {
			delete(c.atEnd, id)
		}
	}
}

// finishedVertices says of each vertex whether its operators had finished in the snapshot
// that the run starts from, and those of all vertices before it (behaviour §11): one that a
// later version of the job feeds anew has work to do.
func (r *restoration) finishedVertices(graph *jobgraph.JobGraph) []bool {
	finished := make([]bool, len(graph.Vertices))
	for v := range graph.Vertices {
		finished[v] = r.finishedIn(graph.Vertices[v].IDs)
		for _, e := range graph.Vertices[v].Inputs {
			finished[v] = finished[v] && finished[graph.Edges[e].From]
		}
	}
	return finished
}

// finishedIn says whether all operators of a vertex had finished in the snapshot.
func (r *restoration) finishedIn(ids []weir.OperatorID) bool {
	for _, id := range ids {
		o := r.snapshot.Operator(id)
		if o == nil || len(o.Subtasks) != o.Parallelism {
			return false
		}
		for i := range o.Subtasks {
			if !o.Subtasks[i].Finished {
				return false
			}
		}
	}
	return true
}

// statusError says why nothing can be asked of a job.
func statusError(s rpc.JobStatus) string { return "the job is " + s.String() }
