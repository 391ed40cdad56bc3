package operator

import (
	"context"
	"errors"

	"github.com/weirflow/weir/jobgraph"
)

// ErrUnknownEntrypoint is wrapped by Catalog.Build when no job has that name; the
// message lists the known ones.
var ErrUnknownEntrypoint = errors.New("unknown entry point")

// ErrBadParams is wrapped by Catalog.Build when parameters do not fit the job's:
// unknown names, values of the wrong type, required ones missing.
var ErrBadParams = errors.New("bad parameters")

// Param describes one parameter of an entry point, for help texts.
type Param struct {
	Name, Type, Default, Help string
}

// Entrypoint describes one job of a catalog.
type Entrypoint struct {
	Name, Help string
	Params     []Param
}

// Catalog holds the jobs that a binary carries.
type Catalog interface {
	// Entrypoints lists the jobs, sorted by name.
	Entrypoints() []Entrypoint
	// Build runs the job's builder once. A builder that panics gives an error with
	// its stack; one that does not return by ctx's end gives ctx's cause (its
	// goroutine is abandoned). All faults of a graph are reported at once, joined.
	Build(ctx context.Context, entrypoint string, params map[string]string) (Program, error)
}

// Program is one build of a job.
type Program interface {
	// Logical is the job's logical graph.
	Logical() *jobgraph.Logical
	// NewChain fuses the operators of a vertex, head first. Outputs of the chain are
	// numbered like vertex.Outputs.
	NewChain(vertex *jobgraph.Vertex, graph *jobgraph.JobGraph) (Chain, error)
	// NewEnumerator returns the enumerator of the source operator with this name.
	NewEnumerator(source string) (Enumerator, error)
}

// MaxEnumeratorState bounds an enumerator's snapshot, in bytes: it lies in the
// checkpoint's metadata, which whoever restores reads whole.
const MaxEnumeratorState = 16 << 20

// Enumerator finds a source's splits. It runs in the JobManager on a goroutine of
// its own; one that hangs or panics harms its job only.
type Enumerator interface {
	// Start is called once, before anything else but Restore.
	Start(ctx context.Context, ec EnumeratorContext) error
	// Restore resumes from a snapshot; it is called before Start, or never.
	Restore(state []byte) error
	// Assign returns each reader's splits before the tasks are deployed. It is not
	// called after a restore: readers then bring their splits along.
	Assign(ctx context.Context, parallelism int) ([][][]byte, error)
	// HandleEvent takes an event of a reader.
	HandleEvent(ctx context.Context, subtask int, event []byte) error
	// Snapshot returns the enumerator's state for a checkpoint, at most
	// [MaxEnumeratorState] bytes. More, and an error, fail the job over.
	Snapshot(ctx context.Context, checkpoint int64) ([]byte, error)
	// NotifyComplete tells of a completed checkpoint.
	NotifyComplete(checkpoint int64)
	// Close ends it.
	Close() error
}

// EnumeratorContext is what an enumerator may use.
type EnumeratorContext interface {
	Parallelism() int
	// SendEvent sends an event to a reader; while a checkpoint holds the gate closed
	// it is held back (behaviour §24). It is an error if the subtask does not run.
	SendEvent(subtask int, event []byte) error
}
