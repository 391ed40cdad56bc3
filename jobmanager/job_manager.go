package jobmanager

import (
	"context"

	"github.com/weirflow/weir/rpc"
)

// JobManager is one process's part in the control plane: a candidate for
// leadership and, while it leads, the dispatcher of the cluster's jobs. Its
// methods may be called from any goroutine.
type JobManager struct {
	cfg Config
}

var _ rpc.ClientGateway = (*JobManager)(nil)

// New makes a JobManager; nothing runs before Start.
func New(cfg Config) (*JobManager, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &JobManager{cfg: cfg.withDefaults()}, nil
}

// Start begins to campaign and returns. The JobManager leads some time later.
func (j *JobManager) Start(ctx context.Context) error { return nil }

// Stop ends leadership and all goroutines; the jobs stay recorded and go on with
// the next leader. It is idempotent, and works before Start.
func (j *JobManager) Stop(ctx context.Context) error { return nil }

// Accept is asked for each TaskManager that opens a session: it returns who hears
// the session's messages, or an error that wraps [rpc.ErrNotLeader].
func (j *JobManager) Accept(ctx context.Context) (rpc.SessionHandler, error) {
	return nil, &rpc.NotLeaderError{}
}

// AwaitLeading returns when this JobManager leads and has taken over its jobs, or
// with ctx's cause.
func (j *JobManager) AwaitLeading(ctx context.Context) error { return nil }
