package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime/debug"

	"go.uber.org/zap"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/blobstore/fs"
	"github.com/weirflow/weir/cli"
	"github.com/weirflow/weir/client"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/localfs"
	"github.com/weirflow/weir/metrics"
	"github.com/weirflow/weir/netstack"
	"github.com/weirflow/weir/netstack/link/grpclink"
	weirgrpc "github.com/weirflow/weir/rpc/grpc"
	"github.com/weirflow/weir/statebackend"
	"github.com/weirflow/weir/statebackend/heap"
	"github.com/weirflow/weir/taskmanager"
)

// taskManager runs a TaskManager until ctx ends.
func (p *process) taskManager(ctx context.Context, o cli.TaskManagerOptions, ready func(cli.Ready)) (err error) {
	if err := checkListens(o.Listen, o.MetricsListen, o.Insecure); err != nil {
		return err
	}
	if err := checkMachine(o.Slots, o.Memory, cpus(), availableMemory()); err != nil {
		return err
	}
	collectLess()
	t := &taskManagerRole{process: p, o: o, log: newLogger(p.logs).With(zap.String("role", "taskmanager"))}
	t.group = group.New(context.WithoutCancel(ctx), "taskmanager")
	t.parts.add(t.group.Stop)
	defer func() { err = errors.Join(err, t.parts.stop()) }()
	r, err := t.start(ctx)
	if err != nil {
		return err
	}
	ready(r)
	return t.await(ctx)
}

// taskManagerRole is one TaskManager while it is assembled and runs.
type taskManagerRole struct {
	*process
	o     cli.TaskManagerOptions
	log   *zap.Logger
	group *group.Group
	parts parts
	stuck chan error // user code that does not return
}

func (t *taskManagerRole) start(ctx context.Context) (cli.Ready, error) {
	dir, err := localfs.Dir(t.o.DataDir)
	if err != nil {
		return cli.Ready{}, fmt.Errorf("--data-dir: %w", err)
	}
	who, err := identify(dir)
	if err != nil {
		return cli.Ready{}, err
	}
	t.parts.add(func(context.Context) error { return who.lock.Close() })
	store, err := t.store()
	if err != nil {
		return cli.Ready{}, err
	}
	m := metrics.New(metrics.Build{Role: "taskmanager", CodeID: t.codeID})
	metricsAddress, err := serveMetrics(ctx, t.group, &t.parts, t.o.MetricsListen, m)
	if err != nil {
		return cli.Ready{}, err
	}
	stack, address, err := t.stack(ctx, who)
	if err != nil {
		return cli.Ready{}, err
	}
	m.BuffersFrom(func() (inUse, total int) {
		s := stack.Stats()
		return s.UsedBuffers, s.TotalBuffers
	})
	if err := t.engine(ctx, who, stack, address, metricsAddress, store, m); err != nil {
		return cli.Ready{}, err
	}
	return cli.Ready{Role: "taskmanager", Data: address, Metrics: metricsAddress, ID: who.id.String()}, nil
}

// store is the checkpoint store: where the flag says, else where the JobManager says.
func (t *taskManagerRole) store() (blobstore.Store, error) {
	if t.o.CheckpointDir != "" {
		s, err := fs.Open(t.o.CheckpointDir)
		if err != nil {
			return nil, fmt.Errorf("--checkpoint-dir: %w", err)
		}
		return &homeStore{Store: s}, nil
	}
	c, err := client.New(t.o.JobManagers, client.Options{})
	if err != nil {
		return nil, err
	}
	t.parts.add(func(context.Context) error { return c.Close() })
	return &homeStore{Store: &sharedStore{
		where: func(ctx context.Context) (string, error) {
			info, err := c.Cluster(ctx)
			return info.CheckpointDir, err
		},
		open: func(dir string) (blobstore.Store, error) {
			s, err := fs.OpenExisting(dir)
			if err != nil {
				return nil, fmt.Errorf("%w: %w (mount it, or give --checkpoint-dir)", errElsewhere, err)
			}
			return s, nil
		},
	}}, nil
}

// stack starts the data path and returns the address that peers are told.
func (t *taskManagerRole) stack(ctx context.Context, who identity) (*netstack.Stack, string, error) {
	plain := insecure.NewCredentials()
	var bound net.Addr
	transport := grpclink.New(t.group, grpclink.Options{
		Client: plain, Server: plain,
		Listen: func(ctx context.Context, address string) (net.Listener, error) {
			l, err := listen(ctx, "--listen", address)
			if err == nil {
				bound = l.Addr()
			}
			return l, err
		},
	})
	stack, err := netstack.New(netstack.Options{
		TaskManager: who.id, Incarnation: who.incarnation, Listen: t.o.Listen, Transport: transport,
		Memory: t.o.Memory, Logger: t.log,
	})
	if err != nil {
		return nil, "", invalid(err.Error(), "")
	}
	t.parts.add(stack.Close)
	if err := stack.Start(ctx); err != nil {
		return nil, "", err
	}
	address, err := advertised(t.o.Advertise, bound)
	return stack, address, err
}

// engine starts the TaskManager proper.
func (t *taskManagerRole) engine(ctx context.Context, who identity, stack *netstack.Stack, address, metricsAddress string, store blobstore.Store, m *metrics.Registry) error {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	t.stuck = make(chan error, 1)
	tm, err := taskmanager.New(taskmanager.Options{
		ID: who.id, Incarnation: who.incarnation, CodeID: t.codeID, Slots: t.o.Slots, Host: host,
		DataAddress: address, MetricsAddress: metricsAddress, Memory: t.o.Memory,
		Catalog: t.catalog, Stack: stack, Store: store, OpenStore: new(foreignStores).open, Backends: backends(),
		Dialer:  weirgrpc.NewDialer(t.group, t.o.JobManagers, insecure.NewCredentials()),
		Metrics: m, Logger: t.log, JobGone: m.Forget,
		Escalate: func(_ weir.AttemptID, err error) {
			select {
			case t.stuck <- err:
			default:
			}
		},
	})
	if err != nil {
		return invalid(err.Error(), "")
	}
	t.parts.add(tm.Close)
	return tm.Start(ctx)
}

// await returns when ctx ends, or when the process must not go on.
func (t *taskManagerRole) await(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-t.group.Context().Done():
		return context.Cause(t.group.Context())
	case err := <-t.stuck:
		t.log.Error("this process must end; its jobs are restarted elsewhere", zap.Error(err))
		return err
	}
}

// heapPages bounds the idle pages that the heap backend keeps for reuse, in bytes.
const heapPages = 64 << 20

// gcPercent lets the heap of a TaskManager grow to four times what lives before it is
// collected: what its records allocate dies young, and state lies in few pages.
const gcPercent = 300

// collectLess sets the collector's pace, unless the environment does.
func collectLess() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// backends are the state backends of this binary, by name. Their pages come from one
// pool.
func backends() map[string]statebackend.Factory {
	h := heap.NewFactory(heap.NewPagePool(heapPages))
	return map[string]statebackend.Factory{h.Name(): h}
}
