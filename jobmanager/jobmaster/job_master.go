package jobmaster

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/jobmanager/inbox"
	"github.com/weirflow/weir/metrics"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/rpc"
)

// Deps are what a leader's jobs share.
type Deps struct {
	Catalog      operator.Catalog
	Blobs        blobstore.Store
	OpenStore    func(location string) (blobstore.Store, error) // another one; nil: there is none
	Jobs         *ha.JobStore
	Epoch        weir.LeaderEpoch
	Slots        Slots
	Pools        *Pools
	Logger       *zap.Logger
	Metrics      *metrics.Registry
	BuildTimeout time.Duration // of one build of a program
	// Ended is called on the job's loop when the job's final status is recorded.
	Ended func(job weir.JobID, final Report)
	// Overtaken is called, on any goroutine, when a read or write was refused because
	// another leader acts. The job does nothing any more.
	Overtaken func(cause error)
}

// Report is what is known of a job, for outsiders.
type Report struct {
	View
	Job     ha.JobRecord
	Started time.Time
	Ended   time.Time // zero while it lives
	Spec    *Spec     // nil until the job's body was read
	Body    *Submission
	Stats   map[weir.AttemptID]rpc.TaskStats
	Hosts   map[weir.TaskManagerID]string // where tasks ran, for people
}

// JobMaster is the shell of one job: it owns the loop job/<id>. Any goroutine may
// call its methods; none of them waits but View and Stop.
type JobMaster struct {
	deps   Deps
	record ha.JobRecord
	first  ha.JobStatus // as it was when this leader found it
	group  *group.Group
	inbox  *inbox.Inbox[letter]
}

// errJobOver is the cause that ends what a finished job still runs.
var errJobOver = errors.New("the job has ended")

// New returns the shell of a job that is recorded and has not ended. Its goroutines
// derive from ctx.
func New(ctx context.Context, deps Deps, record ha.JobRecord, status ha.JobStatus) *JobMaster {
	return &JobMaster{
		deps: deps, record: record, first: status,
		group: group.New(ctx, "job/"+record.Job.String()[:8]),
		inbox: inbox.New[letter](),
	}
}

// Start starts the loop.
func (m *JobMaster) Start() error {
	l := newLoop(m)
	return m.group.Go("job/"+m.record.Job.String()[:8], l.run)
}

// Suspend ends the loop without touching the job: another leader goes on with it.
func (m *JobMaster) Suspend(cause error) { m.group.Cancel(cause) }

// Stop is Suspend, and waits for the job's goroutines.
func (m *JobMaster) Stop(ctx context.Context) error { return m.group.Stop(ctx) }

// Cancel ends the job.
func (m *JobMaster) Cancel() { m.inbox.Post(cancelled{}) }

// Granted answers a request for slots.
func (m *JobMaster) Granted(n uint64, grants []Grant) { m.inbox.Post(granted{n, grants}) }

// Short says what a request waits for.
func (m *JobMaster) Short(n uint64, text string) {
	m.inbox.Post(happened{SlotsShort{Request: n, Text: text}})
}

// Lost says that a TaskManager is gone.
func (m *JobMaster) Lost(id weir.TaskManagerID, incarnation weir.Incarnation, reason string) {
	m.inbox.Post(lost{id, incarnation, reason})
}

// Receive takes a message about one of the job's attempts.
func (m *JobMaster) Receive(s rpc.Session, msg rpc.Message) { m.inbox.Post(received{s, msg}) }

// Figures takes live figures of the job's attempts.
func (m *JobMaster) Figures(stats []rpc.TaskStats) { m.inbox.Post(figures{stats}) }

// ErrNoLoop is returned when the job's loop has ended: it has none under this leader any
// more.
var ErrNoLoop = errors.New("the job is not run by this leader any more")

// View asks the loop for what is known of the job.
func (m *JobMaster) View(ctx context.Context) (Report, error) {
	reply := make(chan Report, 1)
	if !m.inbox.Post(ask{reply}) {
		return Report{}, ErrNoLoop
	}
	select {
	case r := <-reply:
		return r, nil
	case <-ctx.Done():
		return Report{}, context.Cause(ctx)
	case <-m.group.Context().Done():
		return Report{}, ErrNoLoop
	}
}
