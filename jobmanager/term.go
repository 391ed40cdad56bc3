package jobmanager

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/jobmanager/jobmaster"
	"github.com/weirflow/weir/rpc"
)

// term is everything of one leadership. It is made anew with each one, so that
// nothing of an old epoch can be used by mistake.
type term struct {
	cfg        Config
	log        *zap.Logger
	leadership ha.Leadership
	jobs       *ha.JobStore
	group      *group.Group
	dispatcher *dispatcher
	builders   *builders
	claims     chan struct{} // holds one token while a snapshot is claimed
	over       chan error    // why the term should end, the first word counts
}

func newTerm(ctx context.Context, cfg Config, leadership ha.Leadership, log *zap.Logger) *term {
	t := &term{
		cfg: cfg, log: log, leadership: leadership,
		jobs:     ha.NewJobStore(cfg.Registry, leadership.Epoch()),
		group:    group.New(ctx, fmt.Sprintf("term/%d", leadership.Epoch())),
		builders: newBuilders(cfg.Catalog),
		claims:   make(chan struct{}, 1),
		over:     make(chan error, 1),
	}
	t.dispatcher = newDispatcher(t)
	return t
}

// takeOver reads what is recorded and starts the jobs that have not ended.
func (t *term) takeOver() error {
	var recorded []ha.Job
	for {
		var err error
		recorded, err = t.jobs.Jobs(t.group.Context())
		if errors.Is(err, ha.ErrCorrupt) {
			t.log.Error("records of jobs cannot be read; they are left alone", zap.Error(err))
			err = nil
		}
		if err == nil {
			break
		}
		t.log.Warn("jobs not read; will try again", zap.Error(err))
		select {
		case <-t.leadership.Lost():
			return t.leadership.Err()
		case <-t.group.Context().Done():
			return context.Cause(t.group.Context())
		case <-time.After(campaignPause):
		}
	}
	for _, job := range recorded {
		t.dispatcher.inbox.Post(adopt{job: job})
	}
	return t.group.Go("dispatcher", t.dispatcher.run)
}

// await returns why the term is over.
func (t *term) await(ctx context.Context) error {
	select {
	case <-t.leadership.Lost():
		return fmt.Errorf("leadership lost: %w", t.leadership.Err())
	case err := <-t.over:
		return err
	case <-t.group.Context().Done():
		return context.Cause(t.group.Context())
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// overtaken ends the term: a write was refused because another leader acts.
func (t *term) overtaken(cause error) {
	select {
	case t.over <- cause:
	default:
	}
}

// stop suspends all jobs, and returns when nothing of the term runs any more.
func (t *term) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	err := t.group.Stop(ctx)
	t.dispatcher.close(ctx)
	if errors.Is(err, context.Canceled) || errors.Is(err, group.ErrStopped) {
		return nil
	}
	return err
}

// deps are what the jobs of the term share.
func (t *term) deps(pools *jobmaster.Pools) jobmaster.Deps {
	return jobmaster.Deps{
		Catalog: t.cfg.Catalog, Blobs: t.cfg.Blobs, OpenStore: t.cfg.OpenStore, Jobs: t.jobs, Epoch: t.leadership.Epoch(), Slots: t.dispatcher,
		Pools: pools, Logger: t.cfg.Logger, Metrics: t.cfg.Metrics, BuildTimeout: t.cfg.BuildTimeout,
		Ended: t.dispatcher.ended, Overtaken: t.overtaken,
	}
}

// errTermOver ends the sessions of a term that is over.
func errTermOver() error { return &rpc.NotLeaderError{} }
