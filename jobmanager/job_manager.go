package jobmanager

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/rpc"
)

// JobManager is one process's part in the control plane: a candidate for
// leadership and, while it leads, the dispatcher of the cluster's jobs. Its
// methods may be called from any goroutine.
type JobManager struct {
	cfg   Config
	group *group.Group

	mu struct {
		sync.Mutex
		term    *term         // while we lead and have taken over
		changed chan struct{} // closed when term changes
		leader  string        // address of who leads, as far as known
		asking  bool          // somebody finds out who leads
	}
}

var (
	_ rpc.ClientGateway = (*JobManager)(nil)
	_ rpc.Acceptor      = (*JobManager)(nil)
)

const (
	// campaignPause is the time between attempts to campaign that failed.
	campaignPause = time.Second
	// farewell bounds how long a term that ends is waited for, and a resignation.
	farewell = 10 * time.Second
)

// New makes a JobManager; nothing runs before Start.
func New(cfg Config) (*JobManager, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	j := &JobManager{cfg: cfg.withDefaults()}
	j.group = group.New(context.Background(), "jobmanager")
	j.mu.changed = make(chan struct{})
	return j, nil
}

// Start begins to campaign and returns. The JobManager leads some time later. ctx
// bounds nothing but the start itself.
func (j *JobManager) Start(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	return j.group.Go("elector", j.elect)
}

// Stop ends leadership and all goroutines; the jobs stay recorded and go on with
// the next leader. It is idempotent, and works before Start.
func (j *JobManager) Stop(ctx context.Context) error { return j.group.Stop(ctx) }

// Accept is asked for each TaskManager that opens a session: it returns who hears
// the session's messages, or an error that wraps [rpc.ErrNotLeader].
func (j *JobManager) Accept(context.Context) (rpc.SessionHandler, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.mu.term == nil {
		j.askLocked()
		return nil, &rpc.NotLeaderError{Leader: j.mu.leader}
	}
	return sessionHandler{j.mu.term.dispatcher}, nil
}

// AwaitLeading returns when this JobManager leads and has taken over its jobs, or
// with ctx's cause.
func (j *JobManager) AwaitLeading(ctx context.Context) error {
	for {
		j.mu.Lock()
		leads, changed := j.mu.term != nil, j.mu.changed
		j.mu.Unlock()
		if leads {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-j.group.Context().Done():
			return context.Cause(j.group.Context())
		}
	}
}

// elect is the goroutine elector: one term after another.
func (j *JobManager) elect(ctx context.Context) error {
	candidate := ha.Candidate{ID: j.cfg.CandidateID, Address: j.cfg.Advertise}
	for {
		leadership, err := j.cfg.Registry.Campaign(ctx, candidate)
		switch {
		case ctx.Err() != nil:
			if err == nil {
				resign(leadership)
			}
			return context.Cause(ctx)
		case errors.Is(err, ha.ErrClosed):
			return err
		case err != nil:
			j.cfg.Logger.Warn("campaign failed; will try again", zap.Error(err))
		default:
			j.lead(ctx, leadership)
			resign(leadership)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(campaignPause):
		}
	}
}

// lead is one term: from the election until leadership is lost or given up.
func (j *JobManager) lead(ctx context.Context, leadership ha.Leadership) {
	log := j.cfg.Logger.With(zap.Uint64("epoch", uint64(leadership.Epoch())))
	log.Info("elected")
	t := newTerm(ctx, j.cfg, leadership, log)
	cause := t.takeOver()
	if cause == nil {
		j.setTerm(t)
		cause = t.await(ctx)
		j.setTerm(nil)
	}
	log.Info("term ends", zap.Error(cause))
	if err := t.stop(); err != nil {
		log.Warn("term did not end cleanly", zap.Error(err))
	}
}

func resign(leadership ha.Leadership) {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	// Who cannot resign is waited for by the others until the lease ends.
	_ = leadership.Resign(ctx)
}

func (j *JobManager) setTerm(t *term) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.mu.term = t
	close(j.mu.changed)
	j.mu.changed = make(chan struct{})
}

// leading returns the present term, or an error that names the leader.
func (j *JobManager) leading(ctx context.Context) (*term, error) {
	j.mu.Lock()
	t := j.mu.term
	j.mu.Unlock()
	if t != nil {
		return t, nil
	}
	return nil, &rpc.NotLeaderError{Leader: j.whoLeads(ctx)}
}

// whoLeads asks the registry for the leader's address, for a moment. Our own is no
// answer: we were elected and are not ready.
func (j *JobManager) whoLeads(ctx context.Context) string {
	const moment = time.Second
	ctx, cancel := context.WithTimeout(ctx, moment)
	defer cancel()
	leader, err := j.cfg.Registry.Leader(ctx)
	if err != nil || leader.ID == j.cfg.CandidateID {
		leader.Address = ""
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.mu.leader = leader.Address
	return leader.Address
}

// askLocked finds out who leads, for those who may not wait for the answer.
func (j *JobManager) askLocked() {
	if j.mu.asking {
		return
	}
	j.mu.asking = true
	err := j.group.Go("who-leads", func(ctx context.Context) error {
		j.whoLeads(ctx)
		j.mu.Lock()
		defer j.mu.Unlock()
		j.mu.asking = false
		return nil
	})
	if err != nil {
		j.mu.asking = false
	}
}
