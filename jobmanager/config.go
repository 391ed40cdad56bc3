package jobmanager

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"go.uber.org/zap"

	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/jobmanager/joboption"
	"github.com/weirflow/weir/metrics"
	"github.com/weirflow/weir/operator"
)

// Config is what a JobManager is made of.
type Config struct {
	// ClusterID names the cluster to people; required.
	ClusterID string
	// CandidateID names this process in the election, and Advertise is the address
	// at which clients and TaskManagers reach it when it leads; both required.
	CandidateID string
	Advertise   string
	// CodeID is the content id of this binary. Jobs are pinned to it and run on
	// TaskManagers that have it.
	CodeID string
	// Catalog holds the jobs that the binary carries; required.
	Catalog operator.Catalog
	// Registry is the connection to etcd, or its stand-in; required. The JobManager
	// does not close it.
	Registry ha.Registry
	// Blobs is the checkpoint store, required. Job bodies are kept there too.
	Blobs blobstore.Store
	// SavepointDir is the absolute path of the directory below which savepoints go, on
	// storage that the TaskManagers see under the same path. Default: "savepoints" in
	// the checkpoint store.
	SavepointDir string
	// SnapshotDirs are the directories, absolute, below which a submission may name a
	// snapshot outside of the checkpoint store. None: all.
	SnapshotDirs []string
	// OpenStore opens another checkpoint store by its location, for jobs that start
	// from a snapshot in it. Nil: there are none.
	OpenStore func(location string) (blobstore.Store, error)
	// Logger is for everything the JobManager has to say. Default: nothing is logged.
	Logger *zap.Logger
	// Metrics is the process's. Default: one of its own, that nobody reads.
	Metrics *metrics.Registry
	// HeartbeatInterval is how often TaskManagers report, default 2 s;
	// HeartbeatTimeout is after how much silence one is given up, default 10 s.
	HeartbeatInterval time.Duration
	HeartbeatTimeout  time.Duration
	// BuildTimeout bounds one build of a job's program, default 20 s.
	BuildTimeout time.Duration
	// RetainedJobs is how many ended jobs are kept in lists, default 64. The oldest
	// are forgotten first; their checkpoints stay.
	RetainedJobs int
	// Defaults are job options that hold where a submission says nothing.
	Defaults map[string]string
	// Random is where the ids of jobs come from. Nil: crypto/rand; a simulation gives its
	// seed's.
	Random io.Reader
}

// Defaults of a Config.
const (
	DefaultHeartbeatInterval = 2 * time.Second
	DefaultHeartbeatTimeout  = 10 * time.Second
	DefaultBuildTimeout      = 20 * time.Second
	DefaultRetainedJobs      = 64
)

// withDefaults fills in what was left out.
func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	if c.HeartbeatInterval == 0 {
		c.HeartbeatInterval = DefaultHeartbeatInterval
	}
	if c.HeartbeatTimeout == 0 {
		c.HeartbeatTimeout = DefaultHeartbeatTimeout
	}
	if c.BuildTimeout == 0 {
		c.BuildTimeout = DefaultBuildTimeout
	}
	if c.RetainedJobs == 0 {
		c.RetainedJobs = DefaultRetainedJobs
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	if c.Metrics == nil {
		c.Metrics = metrics.New(metrics.Build{Role: "jobmanager", CodeID: c.CodeID})
	}
	return c
}

// Validate reports all faults, joined.
func (c Config) Validate() error {
	var faults []error
	need := func(ok bool, what string) {
		if !ok {
			faults = append(faults, errors.New("jobmanager: "+what))
		}
	}
	need(c.ClusterID != "", "no cluster id")
	need(c.CandidateID != "", "no candidate id")
	need(c.Catalog != nil, "no catalog of jobs")
	need(c.Registry != nil, "no registry")
	need(c.Blobs != nil, "no checkpoint store")
	need(c.HeartbeatInterval >= 0 && c.HeartbeatTimeout >= 0, "negative heartbeat interval or timeout")
	need(c.HeartbeatTimeout == 0 || c.HeartbeatTimeout > c.HeartbeatInterval, "heartbeat timeout is not longer than the interval")
	need(c.BuildTimeout >= 0, "negative build timeout")
	need(c.RetainedJobs >= 0, "negative number of retained jobs")
	if _, err := joboption.Parse(c.Defaults); err != nil {
		faults = append(faults, fmt.Errorf("jobmanager: defaults of jobs: %w", err))
	}
	return errors.Join(faults...)
}
