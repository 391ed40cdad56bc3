package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/weirflow/weir/blobstore/fs"
	"github.com/weirflow/weir/cli"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/jobmanager"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/jobmanager/ha/etcd"
	"github.com/weirflow/weir/jobmanager/ha/etcdserver"
	"github.com/weirflow/weir/jobmanager/joboption"
	"github.com/weirflow/weir/metrics"
	weirgrpc "github.com/weirflow/weir/rpc/grpc"
)

// jobManager runs a JobManager until ctx ends.
func (p *process) jobManager(ctx context.Context, o cli.JobManagerOptions, ready func(cli.Ready)) (err error) {
	if err := checkListens(o.Listen, o.MetricsListen, o.Insecure); err != nil {
		return err
	}
	if _, err := joboption.Parse(o.Defaults); err != nil { // before anything is made on the disk
		return invalid("--set: "+err.Error(), "docs/config.md lists all options")
	}
	j := &jobManagerRole{process: p, o: o, log: newLogger(p.logs).With(zap.String("role", "jobmanager")), broken: make(chan error, 1)}
	j.group = group.New(context.WithoutCancel(ctx), "jobmanager")
	j.parts.add(j.group.Stop)
	defer func() { err = errors.Join(err, j.parts.stop()) }()
	r, err := j.start(ctx)
	if err != nil {
		return err
	}
	ready(r)
	select {
	case <-ctx.Done():
		return nil
	case err := <-j.broken:
		return fmt.Errorf("--data-dir: %w", err)
	case <-j.group.Context().Done():
		return context.Cause(j.group.Context())
	}
}

// jobManagerRole is one JobManager while it is assembled and runs.
type jobManagerRole struct {
	*process
	o     cli.JobManagerOptions
	log   *zap.Logger
	group *group.Group
	parts parts
	// broken gets why the data directory cannot be used any more. It does not end the
	// group at once, whose end would look to the JobManager as if it lost its TaskManagers.
	broken chan error
}

func (j *jobManagerRole) start(ctx context.Context) (cli.Ready, error) {
	checkpoints, err := filepath.Abs(j.o.CheckpointDir)
	if err != nil {
		return cli.Ready{}, fmt.Errorf("--checkpoint-dir: %w", err)
	}
	store, err := fs.Open(checkpoints)
	if err != nil {
		return cli.Ready{}, fmt.Errorf("--checkpoint-dir: %w", err)
	}
	savepoints, err := savepointDir(j.o.SavepointDir)
	if err != nil {
		return cli.Ready{}, fmt.Errorf("--savepoint-dir: %w", err)
	}
	socket, err := listen(ctx, "--listen", j.o.Listen)
	if err != nil {
		return cli.Ready{}, err
	}
	j.parts.add(func(context.Context) error { return ignoreClosed(socket.Close()) })
	address, err := advertised(j.o.Advertise, socket.Addr())
	if err != nil {
		return cli.Ready{}, err
	}
	registry, err := j.registry(ctx)
	if err != nil {
		return cli.Ready{}, err
	}
	m := metrics.New(metrics.Build{Role: "jobmanager", CodeID: j.codeID})
	metricsAddress, err := serveMetrics(ctx, j.group, &j.parts, j.o.MetricsListen, m)
	if err != nil {
		return cli.Ready{}, err
	}
	gs := grpc.NewServer(append(weirgrpc.ServerOptions(), grpc.Creds(insecure.NewCredentials()))...)
	j.parts.add(func(context.Context) error { gs.Stop(); return nil }) // after the JobManager, so that it does not see its sessions end
	jm, err := jobmanager.New(jobmanager.Config{
		ClusterID: j.o.ClusterID, CandidateID: candidateID(j.o, address), Advertise: address, CodeID: j.codeID,
		Catalog: j.catalog, Registry: registry, Blobs: store, SavepointDir: savepoints, OpenStore: new(foreignStores).open, Logger: j.log, Metrics: m, Defaults: j.o.Defaults,
		SnapshotDirs: snapshotDirs(j.o.SnapshotDirs, socket.Addr(), checkpoints, savepoints),
	})
	if err != nil {
		return cli.Ready{}, invalid(err.Error(), "")
	}
	j.parts.add(jm.Stop)
	if err := jm.Start(ctx); err != nil {
		return cli.Ready{}, err
	}
	if err := j.serve(gs, socket, jm); err != nil {
		return cli.Ready{}, err
	}
	if len(j.o.EtcdEndpoints) == 0 { // nobody else can lead: wait until it does
		if err := jm.AwaitLeading(ctx); err != nil {
			return cli.Ready{}, err
		}
	}
	return cli.Ready{Role: "jobmanager", Control: address, Metrics: metricsAddress, CheckpointDir: checkpoints}, nil
}

// snapshotDirs are the directories that clients may name snapshots in; none: all. Who
// listens to other machines opens nothing to them but what it was told to (field report
// B105).
func snapshotDirs(named []string, listens net.Addr, ours ...string) []string {
	tcp, isTCP := listens.(*net.TCPAddr)
	if len(named) == 0 && (!isTCP || tcp.IP.IsLoopback()) {
		return nil
	}
	var dirs []string
	for _, dir := range append(slices.Clone(named), ours...) {
		if abs, err := filepath.Abs(dir); dir != "" && err == nil {
			dirs = append(dirs, abs)
		}
	}
	return dirs
}

// savepointDir makes the directory of savepoints and proves that it can be written.
func savepointDir(dir string) (string, error) {
	if dir == "" {
		return "", nil
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	store, err := fs.Open(abs)
	if err != nil {
		return "", err
	}
	return abs, store.Close()
}

// registry connects to etcd, which it starts itself if none is named.
func (j *jobManagerRole) registry(ctx context.Context) (ha.Registry, error) {
	o := etcd.Options{Cluster: j.o.ClusterID, Logger: j.log}
	var registry *etcd.Registry
	if len(j.o.EtcdEndpoints) > 0 {
		r, err := etcd.Dial(j.o.EtcdEndpoints, o)
		if err != nil {
			return nil, err
		}
		registry = r
	} else {
		server, err := etcdserver.Start(ctx, etcdserver.Options{Dir: j.o.DataDir, Logger: j.log})
		if err != nil {
			return nil, fmt.Errorf("--data-dir: %w", err)
		}
		j.parts.add(server.Close)
		if err := j.group.GoThen("data-dir", server.Watch, func(err error) {
			if err != nil {
				j.broken <- err
			}
		}); err != nil {
			return nil, err
		}
		o.Sole, o.LeaseTTL = true, embeddedLease
		if registry, err = etcd.New(server.Client(), o); err != nil {
			return nil, err
		}
	}
	j.parts.add(func(context.Context) error { return registry.Close() })
	return registry, nil
}

// embeddedLease is how long a JobManager with an etcd of its own may stall: nobody
// waits for its place.
const embeddedLease = time.Minute

// candidateID names this process in the election. With embedded etcd it is always
// the same, so that the JobManager recognises its own former lease.
func candidateID(o cli.JobManagerOptions, address string) string {
	if len(o.EtcdEndpoints) == 0 {
		return "embedded"
	}
	return address + "-" + rand.Text()
}

// serve serves TaskManagers, clients and health checks.
func (j *jobManagerRole) serve(gs *grpc.Server, socket net.Listener, jm *jobmanager.JobManager) error {
	weirgrpc.NewServer(j.group, jm, jm).Register(gs)
	h := health.NewServer()
	grpc_health_v1.RegisterHealthServer(gs, h)
	h.SetServingStatus("", grpc_health_v1.HealthCheckResponse_SERVING)
	return j.group.Go("control", func(context.Context) error {
		if err := gs.Serve(socket); err != nil {
			return fmt.Errorf("serve control: %w", err)
		}
		return nil
	})
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
