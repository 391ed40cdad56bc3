package etcdserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"

	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/localfs"
)

// Errors of Start.
var (
	// ErrInUse: another JobManager uses the data directory.
	ErrInUse = errors.New("data directory is in use by another JobManager; one with an etcd of its own must be alone (for more, start etcd separately)")
	// ErrDirectory: the data directory cannot be made or written.
	ErrDirectory = errors.New("data directory cannot be used")
	// ErrDamaged: etcd cannot start from what is in the data directory.
	ErrDamaged = errors.New("etcd cannot start from the data directory: it is damaged, or not of an etcd of this version")
	// ErrFull: there is no room for the data directory.
	ErrFull = errors.New("no space left for the data directory")
	// ErrFailed: etcd failed while it ran.
	ErrFailed = errors.New("etcd failed")
	// ErrSlow: etcd did not answer in time.
	ErrSlow = errors.New("etcd did not start in time")
)

// Names in the data directory.
const (
	lockFile = "jobmanager.lock"
	etcdDir  = "etcd"
)

// Options of a server.
type Options struct {
	// Dir is the JobManager's data directory; etcd's lies below it.
	Dir string
	// Logger gets etcd's warnings and errors. Nil: none.
	Logger *zap.Logger
	// StartTimeout bounds Start; 0: 30 s.
	StartTimeout time.Duration
	// Sync says whether writes are synced to disk.
	Sync Sync
	// Free says how much room there is. Nil: the file system is asked.
	Free Free
	// LookEvery is how often it is looked at; 0: 1 s, with a jitter of a tenth.
	LookEvery time.Duration
}

// Sync says how durable an acknowledged write is.
type Sync bool

// Syncs.
const (
	Synced   Sync = false // it survives the host's crash
	Unsynced Sync = true  // it survives the process's: for tests
)

// Server is a running etcd.
type Server struct {
	etcd *embed.Etcd
	lock io.Closer
	// stop closes both, once, and returns the same error every time.
	stop func() error
	dir  string
	log  *zap.Logger
	free Free
	look time.Duration
	// failed gets what etcd fails of, once.
	failed chan error
	// dead is set once Watch has returned that.
	dead atomic.Bool
}

// Start starts an etcd in the data directory and waits until it answers.
func Start(ctx context.Context, o Options) (*Server, error) {
	if o.StartTimeout <= 0 {
		o.StartTimeout = 30 * time.Second
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.Free == nil {
		o.Free = freeSpace
	}
	if o.LookEvery <= 0 {
		o.LookEvery = time.Second
	}
	dir := filepath.Join(o.Dir, etcdDir)
	lock, err := lockDir(o.Dir, dir)
	if err != nil {
		return nil, err
	}
	if err := checkSpace(dir, o.Free); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	shrinkLog()
	s := &Server{lock: lock, dir: dir, log: o.Logger, free: o.Free, look: o.LookEvery, failed: make(chan error, 1)}
	s.stop = sync.OnceValue(func() error {
		s.etcd.Close()
		return s.lock.Close()
	})
	if err := s.embed(o); err != nil {
		// After a failure of a running etcd parts of it may live on, so the lock is kept: this
		// process must not try again.
		var died *deathError
		if !errors.As(err, &died) {
			err = errors.Join(err, lock.Close())
		}
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, dir, err)
	}
	if err := s.ready(ctx, o.StartTimeout); err != nil {
		return nil, errors.Join(err, s.Close(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// deathError is what etcd would have ended the process of while it started.
type deathError struct{ error }

func (d *deathError) Unwrap() error { return d.error }

// embed starts the server, on a goroutine that etcd may end.
func (s *Server) embed(o Options) error {
	log := quiet(o.Logger, s.failed)
	started := make(chan error, 1)
	g := group.New(context.Background(), "etcdserver")
	err := g.GoThen("start", func(context.Context) (err error) {
		if err := checkDatabase(s.dir, log); err != nil {
			return err
		}
		s.etcd, err = embed.StartEtcd(config(s.dir, o, log))
		return err
	}, func(err error) { started <- err })
	if err != nil {
		return err
	}
	select {
	case err = <-started:
	case err = <-s.failed:
		return &deathError{err}
	}
	var p *group.PanicError
	switch {
	case errors.As(err, &p):
		o.Logger.Error("etcd panicked while it started", zap.Error(p), zap.String("stack", p.Stack))
		return &deathError{err}
	case errors.Is(err, group.ErrExited):
		return &deathError{<-s.failed} // nothing else ends that goroutine
	}
	return err
}

// lockDir makes the directories and takes the lock.
func lockDir(data, etcd string) (io.Closer, error) {
	files, err := localfs.Dir(data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDirectory, err)
	}
	lock, err := files.Lock(lockFile)
	if errors.Is(err, localfs.ErrLocked) {
		return nil, fmt.Errorf("%w: %w", ErrInUse, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDirectory, err)
	}
	if err := probe(etcd); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrDirectory, err), lock.Close())
	}
	return lock, nil
}

// probe makes etcd's directory and proves that files can be made in it. etcd insists
// on mode 0700.
func probe(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return err
	}
	err = f.Close()
	if rerr := os.Remove(f.Name()); err == nil {
		err = rerr
	}
	return err
}

// checkDatabase opens etcd's database, if there is one, as etcd does: but etcd does so
// on a goroutine of its own, whose panic nobody can catch.
func checkDatabase(dir string, l *zap.Logger) error {
	path := filepath.Join(dir, "member", "snap", "db")
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return backend.NewDefaultBackend(l, path).Close()
}

// Sizes and times of an etcd that holds little and is alone.
const (
	tick            = 20  // ms; raft's clock
	election        = 100 // ms; nobody votes against us
	snapshotEvery   = 2000
	catchUpEntries  = 100
	keepRevisions   = "1000"
	quota           = 256 << 20
	maxRequest      = 4 << 20
	logSegment      = 4 << 20
	maxRequestOps   = 256
	neverListenedOn = "http://127.0.0.1:2380"
)

// config listens nowhere: the one client is in this process, and there is no peer.
func config(dir string, o Options, log *zap.Logger) *embed.Config {
	nowhere := url.URL{Scheme: "http", Host: "127.0.0.1:2380"}
	cfg := embed.NewConfig()
	cfg.Name = "weir"
	cfg.Dir = dir
	cfg.ListenPeerUrls, cfg.ListenClientUrls = nil, nil
	cfg.AdvertisePeerUrls, cfg.AdvertiseClientUrls = []url.URL{nowhere}, []url.URL{nowhere}
	cfg.InitialCluster = cfg.Name + "=" + neverListenedOn
	cfg.InitialClusterToken = "weir"
	cfg.TickMs, cfg.ElectionMs = tick, election
	cfg.SnapshotCount, cfg.SnapshotCatchUpEntries = snapshotEvery, catchUpEntries
	cfg.AutoCompactionMode, cfg.AutoCompactionRetention = embed.CompactorModeRevision, keepRevisions
	cfg.QuotaBackendBytes = quota
	cfg.MaxRequestBytes = maxRequest
	cfg.MaxTxnOps = maxRequestOps
	cfg.MaxSnapFiles, cfg.MaxWalFiles = 2, 2
	cfg.UnsafeNoFsync = bool(o.Sync)
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log)
	return cfg
}

// shrinkLog makes segments of etcd's log, which are allocated whole, as small as what
// we keep. It is a variable of etcd's package, so it is set once, before any server.
var shrinkLog = sync.OnceFunc(func() { wal.SegmentSizeBytes = logSegment })

// ready waits until the server answers.
func (s *Server) ready(ctx context.Context, timeout time.Duration) error {
	t := time.NewTimer(timeout)
	defer t.Stop()
	select {
	case <-s.etcd.Server.ReadyNotify():
		return nil
	case err := <-s.failed:
		return s.failure(err)
	case <-s.etcd.Server.StopNotify():
		return fmt.Errorf("%w: it stopped", ErrDamaged)
	case <-t.C:
		return fmt.Errorf("%w: %v", ErrSlow, timeout)
	case <-ctx.Done():
		return fmt.Errorf("start etcd: %w", context.Cause(ctx))
	}
}

// Client returns a client that calls the server directly. The caller closes it, before
// the server.
func (s *Server) Client() *clientv3.Client { return v3client.New(s.etcd.Server) }

// Stopped is closed when the server has stopped, by Close or by itself.
func (s *Server) Stopped() <-chan struct{} { return s.etcd.Server.StopNotify() }

// Close stops the server and gives the lock back. At ctx's end it returns, and leaves
// the lock to the end of the process; also if etcd has failed, since what is left of it
// cannot be stopped. It is idempotent.
func (s *Server) Close(ctx context.Context) error {
	if s.dead.Load() {
		return nil
	}
	g := group.New(context.WithoutCancel(ctx), "etcdserver")
	err := g.Go("close", func(context.Context) error { return s.stop() })
	if err != nil {
		return err
	}
	if err := g.Stop(ctx); err != nil {
		return fmt.Errorf("close etcd: %w", err)
	}
	return nil
}
