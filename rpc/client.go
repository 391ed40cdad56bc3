package rpc

import (
	"context"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobgraph"
)

// ClientGateway is what a client may ask of the JobManager. Errors carry a Code
// (errors.go); rpc/grpc maps them to gRPC codes.
type ClientGateway interface {
	Submit(ctx context.Context, r SubmitRequest) (SubmitReply, error)
	List(ctx context.Context) ([]JobSummary, error)
	Get(ctx context.Context, job string) (JobDetail, error) // by id or by name of the latest job so called
	Cancel(ctx context.Context, job string) error
	Checkpoints(ctx context.Context, job string) (CheckpointList, error)
	Plan(ctx context.Context, r SubmitRequest) (PlanReply, error)
	Cluster(ctx context.Context) (ClusterInfo, error)
	// TakeSnapshot takes a checkpoint or a savepoint, and returns when there is one.
	TakeSnapshot(ctx context.Context, r SnapshotRequest) (SnapshotReply, error)
	// StopJob ends a job with a savepoint, and returns when it has ended, or will not.
	StopJob(ctx context.Context, r StopRequest) (StopReply, error)
	// CheckpointInterval says how often a job takes checkpoints, and changes it.
	CheckpointInterval(ctx context.Context, r IntervalRequest) (IntervalReply, error)
	// InUse says what of the checkpoint directory jobs need, as the leader knows it.
	InUse(ctx context.Context) (InUse, error)
}

// SnapshotRequest asks for a snapshot of a running job.
type SnapshotRequest struct {
	Job       string // id, or name of the latest job so called
	RequestID string // a second request with the same one gets the first one's answer
	// Kind is Checkpoint, FullCheckpoint, Savepoint or NativeSavepoint.
	Kind weir.SnapshotKind
	// Target is the directory that a savepoint's own is made in: below the cluster's
	// savepoint directory, absolute or relative to it. Empty: as the job's options say.
	Target string
}

// SnapshotReply says where the snapshot is.
type SnapshotReply struct {
	Checkpoint weir.CheckpointID
	Path       string
	Bytes      int64
	Duration   time.Duration // from its trigger
}

// StopRequest asks for the end of a job with a savepoint.
type StopRequest struct {
	Job       string
	RequestID string
	// Drain ends the data of the sources: windows fire, operators emit their last
	// records. It is for a job that will not go on from the savepoint.
	Drain  bool
	Target string // as in SnapshotRequest
}

// StopReply says how a stop went. If there is no savepoint there is an error instead.
type StopReply struct {
	Checkpoint weir.CheckpointID
	Path       string
	Status     JobStatus // FINISHED if all is well
	// Failure says why the job has not ended, though the savepoint is there. The job
	// goes on from it.
	Failure string
}

// SubmitRequest asks for a job.
type SubmitRequest struct {
	Entrypoint  string
	Params      map[string]string
	Name        string            // default: the entry point's name
	RequestID   string            // a second submission with the same one returns the first's job
	Options     map[string]string // --set key=value; keys of docs/config.md
	Parallelism int               // 0: from options, else 1
	From        string            // path of a checkpoint to start from
}

// SubmitReply names the job.
type SubmitReply struct {
	Job     weir.JobID
	Name    string
	Existed bool // the request id was known
}

// JobStatus is the state of a job.
type JobStatus uint8

// Job states. The last three are final.
const (
	JobInitializing JobStatus = iota
	JobCreated                // waits for slots or is deploying
	JobRunning
	JobFailing
	JobCancelling
	JobRestarting
	JobSuspended // its JobManager lost leadership
	JobFinished
	JobCanceled
	JobFailed
)

var jobStatusNames = [...]string{"INITIALIZING", "CREATED", "RUNNING", "FAILING", "CANCELLING", "RESTARTING", "SUSPENDED", "FINISHED", "CANCELED", "FAILED"}

func (s JobStatus) String() string {
	if int(s) < len(jobStatusNames) {
		return jobStatusNames[s]
	}
	return "UNKNOWN"
}

// Final says whether the job has ended.
func (s JobStatus) Final() bool { return s >= JobFinished }

// JobSummary is one line of a list.
type JobSummary struct {
	Job            weir.JobID
	Name           string
	Entrypoint     string
	Status         JobStatus
	Detail         string // why it waits or failed, for people
	Started        time.Time
	Ended          time.Time // zero while it lives
	Tasks          int
	Running        int // tasks in state RUNNING
	Restarts       int
	LastCheckpoint weir.CheckpointID
}

// JobDetail is a job with its tasks.
type JobDetail struct {
	JobSummary
	RequestID    string
	Params       map[string]string
	Options      map[string]string // effective
	Graph        jobgraph.JobGraph
	Tasks        []TaskDetail
	Failure      *weir.Failure // the last one
	RestoredFrom string
	// RestoreReason says why it runs from that snapshot and no other.
	RestoreReason string
	Savepoint     string // path of the one that it was stopped with
	Stopping      string // request id of a stop that is under way
}

// TaskDetail is one subtask.
type TaskDetail struct {
	Attempt     weir.AttemptID
	Vertex      string
	State       TaskState
	TaskManager string
	Stats       TaskStats
	Failure     string
}

// CheckpointStatus is where a checkpoint stands.
type CheckpointStatus uint8

// Checkpoint statuses.
const (
	CheckpointPending CheckpointStatus = iota
	CheckpointCompleted
	CheckpointFailed
)

func (s CheckpointStatus) String() string {
	return [...]string{"IN_PROGRESS", "COMPLETED", "FAILED"}[min(int(s), 2)]
}

// CheckpointInfo is one checkpoint with its subtasks' timings.
type CheckpointInfo struct {
	ID        weir.CheckpointID
	Kind      weir.SnapshotKind
	Status    CheckpointStatus
	Triggered time.Time
	Duration  time.Duration // to the link for completed ones, to the abort for failed ones
	Bytes     int64         // in-flight data included
	// PersistedBytes is the in-flight data in it.
	PersistedBytes int64
	// Unaligned says that a subtask's snapshot did not wait for all barriers.
	Unaligned bool
	Path      string
	Reason    weir.FailureReason
	Message   string
	// NewBytes is what was written for it; the rest of Bytes was there from earlier ones.
	NewBytes            int64
	Tasks, Acknowledged int        // awaited, heard of
	Steps               []StepTime // in order, as far as it came
	Vertices            []VertexCheckpoint
	// Subtasks are those awaited, by vertex and subtask. The older ones of large jobs are
	// not kept.
	Subtasks []SubtaskCheckpoint
	// Late acknowledged after it had failed.
	Late []SubtaskCheckpoint
}

// Type is the name of what it is in statistics (behaviour §10).
func (c CheckpointInfo) Type() string {
	switch {
	case c.Kind.IsSynchronous():
		return "SYNC_SAVEPOINT"
	case c.Kind.IsSavepoint():
		return "SAVEPOINT"
	case c.Unaligned:
		return "UNALIGNED_CHECKPOINT"
	default:
		return "CHECKPOINT"
	}
}

// SubtaskCheckpoint is one subtask's part.
type SubtaskCheckpoint struct {
	Vertex       string
	Attempt      weir.AttemptID
	Acknowledged time.Duration // after the trigger; 0 if it did not
	Metrics      weir.CheckpointMetrics
}

// CheckpointList is a job's recent checkpoints, newest first, and counts since its start.
type CheckpointList struct {
	Job       weir.JobID
	Completed int64
	Failed    int64
	Pending   int64
	Restored  weir.CheckpointID // what the tasks were started from last
	Restores  int64             // how often they were, from some snapshot
	Recent    []CheckpointInfo
	Summary   CheckpointSummary
	Latest    CheckpointLatest
}

// PlanReply shows what a submission would run.
type PlanReply struct {
	Graph    jobgraph.JobGraph
	Text     string // canonical text of the logical graph
	Slots    int    // needed
	Warnings []string
}

// ClusterInfo describes the cluster.
type ClusterInfo struct {
	ClusterID     string
	Epoch         weir.LeaderEpoch
	CodeID        string
	TaskManagers  []TaskManagerInfo
	Entrypoints   []string
	CheckpointDir string
}

// TaskManagerInfo is one registered TaskManager.
type TaskManagerInfo struct {
	Registration
	FreeSlots     int
	LastHeartbeat time.Duration // age
}
