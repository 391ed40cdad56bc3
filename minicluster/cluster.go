package minicluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/blobstore/fs"
	"github.com/weirflow/weir/blobstore/mem"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/jobmanager"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/netstack/link"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/rpc/local"
	"github.com/weirflow/weir/statebackend/heap"
)

// Cluster is a JobManager and TaskManagers in this process. Its methods may be
// called from any goroutine.
type Cluster struct {
	o        Options
	store    blobstore.Store
	opened   io.Closer // the store, if it is ours to close
	pages    *heap.PagePool
	network  *link.Memory
	registry ha.Registry
	jm       *jobmanager.JobManager

	mu struct {
		sync.Mutex
		sessions *group.Group // nil before Start
		workers  []*worker    // by index; nil: stopped
		stopped  bool
	}
}

// New makes a cluster; nothing runs before Start.
func New(o Options) (*Cluster, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Cluster{o: o, pages: heap.NewPagePool(heap.DefaultPoolBytes), network: link.NewMemory(nil)}
	if err := c.openStore(); err != nil {
		return nil, fmt.Errorf("minicluster: %w", err)
	}
	c.registry = ha.NewMemory(0).Connect("minicluster", ha.Hook{})
	c.jm, err = jobmanager.New(jobmanager.Config{
		ClusterID: o.ClusterID, CandidateID: "jobmanager", Advertise: "local", CodeID: o.CodeID, Catalog: o.Catalog,
		Registry: c.registry, Blobs: c.store, OpenStore: o.OpenStore, Logger: o.Logger.Named("jobmanager"), Metrics: o.Metrics,
		HeartbeatInterval: o.HeartbeatInterval, HeartbeatTimeout: 50 * o.HeartbeatInterval, Defaults: o.Defaults,
	})
	if err != nil {
		return nil, fmt.Errorf("minicluster: %w", err)
	}
	return c, nil
}

func (c *Cluster) openStore() error {
	switch {
	case c.o.Store != nil:
		c.store = c.o.Store
	case c.o.Dir == "":
		c.store = mem.New()
	default:
		s, err := fs.Open(c.o.Dir)
		if err != nil {
			return err
		}
		c.store, c.opened = s, s
	}
	return nil
}

// Start starts everything and returns when the JobManager leads. ctx bounds the
// start; its values, not its end, are those of everything that runs.
func (c *Cluster) Start(ctx context.Context) error {
	c.mu.Lock()
	if c.mu.sessions != nil || c.mu.stopped {
		c.mu.Unlock()
		return errors.New("minicluster: started or stopped before")
	}
	c.mu.sessions = group.New(context.WithoutCancel(ctx), "minicluster")
	c.mu.workers = make([]*worker, c.o.TaskManagers)
	c.mu.Unlock()
	if err := c.start(ctx); err != nil {
		return errors.Join(fmt.Errorf("start minicluster: %w", err), c.Stop(context.WithoutCancel(ctx)))
	}
	return nil
}

func (c *Cluster) start(ctx context.Context) error {
	if err := c.jm.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	if err := c.jm.AwaitLeading(ctx); err != nil {
		return err
	}
	for i := range c.o.TaskManagers {
		if err := c.StartTaskManager(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// Stop ends everything: jobs are cut off where they are. Idempotent.
func (c *Cluster) Stop(ctx context.Context) error {
	c.mu.Lock()
	c.mu.stopped = true
	sessions, workers := c.mu.sessions, c.mu.workers
	c.mu.workers = nil
	c.mu.Unlock()
	// The JobManager goes first, so that it does not take the end of the others for
	// a failure.
	err := c.jm.Stop(ctx)
	for _, w := range workers {
		err = errors.Join(err, w.stop(ctx))
	}
	if sessions != nil {
		err = errors.Join(err, sessions.Stop(ctx))
	}
	if c.opened != nil {
		err = errors.Join(err, c.opened.Close())
	}
	return errors.Join(err, c.registry.Close())
}

// Gateway is how clients talk to the cluster.
func (c *Cluster) Gateway() rpc.ClientGateway { return c.jm }

// Store is where the checkpoints are.
func (c *Cluster) Store() blobstore.Store { return c.store }

// StartTaskManager starts the TaskManager with this index, from 0, after
// StopTaskManager.
func (c *Cluster) StartTaskManager(ctx context.Context, i int) error {
	c.mu.Lock()
	sessions := c.mu.sessions
	ok := sessions != nil && !c.mu.stopped && i >= 0 && i < len(c.mu.workers) && c.mu.workers[i] == nil
	c.mu.Unlock()
	if !ok {
		return fmt.Errorf("minicluster: TaskManager %d cannot be started now", i)
	}
	w, err := c.startWorker(ctx, i, local.NewDialer(sessions, c.jm))
	if err != nil {
		return fmt.Errorf("start TaskManager %d: %w", i, err)
	}
	c.mu.Lock()
	taken := c.mu.stopped || c.mu.workers[i] != nil
	if !taken {
		c.mu.workers[i] = w
	}
	c.mu.Unlock()
	if taken {
		return errors.Join(fmt.Errorf("minicluster: TaskManager %d was started or stopped meanwhile", i), w.stop(ctx))
	}
	return nil
}

// StopTaskManager ends the TaskManager with this index. The jobs that ran there
// fail and are restarted, if their options say so, once there are slots.
func (c *Cluster) StopTaskManager(ctx context.Context, i int) error {
	c.mu.Lock()
	if i < 0 || i >= len(c.mu.workers) || c.mu.workers[i] == nil {
		c.mu.Unlock()
		return fmt.Errorf("minicluster: TaskManager %d does not run", i)
	}
	w := c.mu.workers[i]
	c.mu.workers[i] = nil
	c.mu.Unlock()
	return w.stop(ctx)
}
