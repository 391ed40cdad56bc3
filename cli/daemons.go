package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/client"
)

// JobManagerOptions are the flags of a JobManager.
type JobManagerOptions struct {
	Listen        string   // host:port for TaskManagers and clients; port 0: any free one
	Advertise     string   // host or host:port at which others reach it; empty: what it listens at
	MetricsListen string   // host:port for Prometheus; empty: none
	DataDir       string   // for embedded etcd
	CheckpointDir string   // shared with the TaskManagers
	SnapshotDirs  []string // besides those, from which jobs may be started; none: see the flag
	SavepointDir  string   // likewise; empty: "savepoints" in CheckpointDir
	ClusterID     string   // keeps clusters that share an etcd apart
	EtcdEndpoints []string // empty: embedded
	Insecure      bool     // plaintext beyond loopback is meant
	Defaults      map[string]string
}

// TaskManagerOptions are the flags of a TaskManager.
type TaskManagerOptions struct {
	JobManagers   []string
	Listen        string // host:port for data; port 0: any free one
	Advertise     string
	MetricsListen string
	Slots         int
	Memory        int64 // bytes for network buffers
	DataDir       string
	CheckpointDir string // empty: what the JobManager says
	Insecure      bool
}

// LocalOptions describe a cluster within this process.
type LocalOptions struct {
	Slots         int
	CheckpointDir string // empty: memory
}

// Ready says where a daemon serves.
type Ready struct {
	Role          string `json:"role"`
	Control       string `json:"control,omitempty"`
	Data          string `json:"data,omitempty"`
	Metrics       string `json:"metrics,omitempty"`
	CheckpointDir string `json:"checkpoint_dir,omitempty"`
	ID            string `json:"id,omitempty"`
}

// ready prints where a daemon serves, since ports may have been chosen freely.
func (a *app) ready(r Ready) {
	if a.json() {
		_ = printJSON(a.streams.Out, r)
		return
	}
	line := r.Role + " ready"
	add := func(what, where string) {
		if where != "" {
			line += "  " + what + " " + where
		}
	}
	add("control", r.Control)
	add("data", r.Data)
	add("metrics", r.Metrics)
	add("checkpoints", r.CheckpointDir)
	fmt.Fprintln(a.streams.Out, line)
}

const insecureHelp = "allow a listen address beyond loopback without encryption"

func (a *app) jobManagerCommand() *cobra.Command {
	var o JobManagerOptions
	var defaults pairs
	cmd := &cobra.Command{
		Use:   "jobmanager",
		Short: "Run a JobManager: it plans, checkpoints and recovers jobs",
		Long: `Jobmanager runs until it is interrupted. It keeps what must survive in etcd, embedded in
its data directory unless --etcd-endpoints names one, and checkpoints in a directory that
the TaskManagers see under the same path. What its ports became is printed.`,
		Example: `  weir jobmanager --data-dir /var/lib/weir --checkpoint-dir /mnt/checkpoints`,
		Args:    exactly(0, "no arguments"),
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed("jobmanager") {
			return usageError{errors.New("a JobManager takes no --jobmanager: with embedded etcd there is exactly one; several share --etcd-endpoints")}
		}
		o.Defaults = defaults
		return a.roles.JobManager(cmd.Context(), o, a.ready)
	}
	f := cmd.Flags()
	f.StringVar(&o.Listen, "listen", DefaultJobManager, "address for TaskManagers and clients; port 0 is any free one")
	f.StringVar(&o.Advertise, "advertise", "", "address at which others reach it (default: what it listens at)")
	f.StringVar(&o.MetricsListen, "metrics-listen", "127.0.0.1:0", "address for Prometheus; empty for none")
	f.StringVar(&o.DataDir, "data-dir", "weir-data/jobmanager", "directory for embedded etcd")
	f.StringVar(&o.CheckpointDir, "checkpoint-dir", "weir-data/checkpoints", "directory for checkpoints, shared with the TaskManagers")
	f.StringArrayVar(&o.SnapshotDirs, "snapshot-dir", nil, "directory, besides those of checkpoints and savepoints, below which --from may name snapshots; may be repeated (default: any, if --listen is for this machine alone, else none)")
	f.StringVar(&o.SavepointDir, "savepoint-dir", "", "directory for savepoints, shared with the TaskManagers under the same path (default: savepoints in the checkpoint directory)")
	f.StringVar(&o.ClusterID, "cluster-id", "default", "name of the cluster")
	f.StringSliceVar(&o.EtcdEndpoints, "etcd-endpoints", nil, "an etcd cluster to use instead of the embedded one")
	f.Var(&defaults, "set", "a default for job options; may be repeated")
	f.BoolVar(&o.Insecure, "insecure", false, insecureHelp)
	return cmd
}

func (a *app) taskManagerCommand() *cobra.Command {
	var o TaskManagerOptions
	memory := "256mb"
	cmd := &cobra.Command{
		Use:   "taskmanager",
		Short: "Run a TaskManager: it runs the tasks of jobs",
		Long: `Taskmanager runs until it is interrupted. It registers with the JobManager at --jobmanager,
waits for one that is not there yet, and offers its slots: a slot holds one subtask of every
vertex of a job. What its ports became is printed.`,
		Example: `  weir taskmanager --jobmanager 10.0.0.1:6123 --slots 4 --memory 1gb`,
		Args:    exactly(0, "no arguments"),
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var err error
		if o.Memory, err = parseBytes(memory); err != nil {
			return usageError{fmt.Errorf("--memory: %w", err)}
		}
		if o.Slots < 1 {
			return usageError{fmt.Errorf("--slots is %d, want at least 1", o.Slots)}
		}
		if o.JobManagers, err = client.ParseAddresses(strings.Split(a.jobManager, ",")); err != nil {
			return err
		}
		return a.roles.TaskManager(cmd.Context(), o, a.ready)
	}
	f := cmd.Flags()
	f.StringVar(&o.Listen, "listen", "127.0.0.1:0", "address for data from other TaskManagers; port 0 is any free one")
	f.StringVar(&o.Advertise, "advertise", "", "address at which other TaskManagers reach it (default: what it listens at)")
	f.StringVar(&o.MetricsListen, "metrics-listen", "127.0.0.1:0", "address for Prometheus; empty for none")
	f.IntVar(&o.Slots, "slots", 2, "subtasks of a vertex that it runs at once")
	f.StringVar(&memory, "memory", memory, "memory for network buffers, for example 64mb")
	f.StringVar(&o.DataDir, "data-dir", "weir-data/taskmanager", "directory for its identity; one per TaskManager")
	f.StringVar(&o.CheckpointDir, "checkpoint-dir", "", "directory for checkpoints, if it is another path than the JobManager's")
	f.BoolVar(&o.Insecure, "insecure", false, insecureHelp)
	return cmd
}

// parseBytes reads a size such as 64mb, 32kb or 1048576; units are powers of 1024.
func parseBytes(s string) (int64, error) {
	text := strings.ToLower(strings.TrimSpace(s))
	shift := 0
	for _, u := range []struct {
		suffix string
		shift  int
	}{{"kb", 10}, {"mb", 20}, {"gb", 30}, {"tb", 40}, {"k", 10}, {"m", 20}, {"g", 30}, {"t", 40}, {"b", 0}} {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			text, shift = strings.TrimSpace(rest), u.shift
			break
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64>>shift {
		return 0, fmt.Errorf("%q is not a size: want for example 64mb", s)
	}
	return n << shift, nil
}
