package minicluster

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/metrics"
	"github.com/weirflow/weir/operator"
)

// Options of a cluster. Zero values stand for the defaults.
type Options struct {
	// Jobs are what can be run; or Catalog holds them, but not both.
	Jobs    []flow.Job
	Catalog operator.Catalog
	// TaskManagers is how many there are, default 1; each has Slots slots, default
	// 4, and Memory bytes for network buffers, default 64 MiB.
	TaskManagers int
	Slots        int
	Memory       int64
	// Dir is a directory for checkpoints, which is created. Store is a store to
	// use instead. Default: memory.
	Dir   string
	Store blobstore.Store
	// OpenStore opens another checkpoint store by its location, for jobs that start
	// from a checkpoint there. Default: they can start from the cluster's own only.
	OpenStore func(location string) (blobstore.Store, error)
	// ClusterID and CodeID name the cluster and this binary; defaults "minicluster"
	// and "local".
	ClusterID string
	CodeID    string
	// Defaults are job options that hold where a submission says nothing.
	Defaults map[string]string
	// HeartbeatInterval is how often TaskManagers report, default 200 ms.
	HeartbeatInterval time.Duration
	// Logger is for what the cluster has to say; default: nothing is logged.
	Logger *zap.Logger
	// Metrics is the process's registry; default: figures are shown nowhere.
	Metrics *metrics.Registry
}

// withDefaults fills in what was left out and checks the rest.
func (o Options) withDefaults() (Options, error) {
	def(&o.TaskManagers, 1)
	def(&o.Slots, 4)
	def(&o.Memory, 64<<20)
	def(&o.ClusterID, "minicluster")
	def(&o.CodeID, "local")
	def(&o.HeartbeatInterval, 200*time.Millisecond)
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	var faults []error
	if o.TaskManagers < 0 || o.Slots < 0 || o.Memory < 0 || o.HeartbeatInterval < 0 {
		faults = append(faults, fmt.Errorf("%d TaskManagers with %d slots and %d bytes each, heartbeats every %s: nothing may be negative",
			o.TaskManagers, o.Slots, o.Memory, o.HeartbeatInterval))
	}
	if (o.Catalog == nil) == (len(o.Jobs) == 0) {
		faults = append(faults, errors.New("either Jobs or Catalog is to be given"))
	}
	if o.Dir != "" && o.Store != nil {
		faults = append(faults, errors.New("of Dir and Store only one may be given"))
	}
	if len(o.Jobs) > 0 {
		catalog, err := flow.NewCatalog(o.Jobs...)
		if err != nil {
			faults = append(faults, err)
		}
		o.Catalog = catalog
	}
	if err := errors.Join(faults...); err != nil {
		return Options{}, fmt.Errorf("minicluster: %w", err)
	}
	return o, nil
}

func def[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}
