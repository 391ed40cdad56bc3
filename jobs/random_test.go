package jobs_test

import (
	"fmt"
	"path"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/minicluster"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/sim/randomjob"
	"github.com/weirflow/weir/snapshotmeta"
)

// TestRandomGraphsCountEveryRecordOnce runs random graphs with every kind of edge in a
// cluster, and each again from one of its checkpoints, with other parallelisms. Half of
// them have a slow vertex and unaligned checkpoints.
func TestRandomGraphsCountEveryRecordOnce(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			c := minicluster.ForTest(t, minicluster.Options{Jobs: []flow.Job{randomjob.Job}, TaskManagers: 2, Slots: 12})
			p := randomjob.Params{Seed: seed, Widths: seed, Once: seed%3 > 0, Records: 600, Rate: 3000, Keys: 5, Size: 50}
			if seed%4 == 3 {
				p.Large = 40_000
			}
			if seed%2 == 1 {
				p.Records, p.Rate, p.Sleep = 300, 0, 300*time.Microsecond
			}
			half, at := runRandom(t, c, p, "", weir.NoCheckpoint)
			if p.Once {
				p.Widths += 100
			}
			runRandom(t, c, p, half, at)
		})
	}
}

// runRandom runs a job until its counters have the answer. It returns the first
// checkpoint in which there was something.
func runRandom(t *testing.T, c *minicluster.Cluster, p randomjob.Params, from string, after weir.CheckpointID) (half string, at weir.CheckpointID) {
	reply, err := c.Gateway().Submit(t.Context(), rpc.SubmitRequest{
		Entrypoint: randomjob.Name, Name: "from" + from, From: from, Params: p.Map(),
		Options: map[string]string{
			"execution.checkpointing.interval": "20ms", "execution.checkpointing.num-retained": "1000", "pipeline.max-parallelism": "128",
			"execution.checkpointing.unaligned.enabled": fmt.Sprint(p.Sleep > 0),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	want, diff := randomjob.Expected(p), ""
	for range 500 {
		d, err := c.Await(t.Context(), reply.Job, func(d rpc.JobDetail) bool { return d.LastCheckpoint > after || d.Status.Final() })
		if err != nil || d.Status.Final() {
			t.Fatalf("%v: %+v", err, d)
		}
		after = d.LastCheckpoint
		dir := path.Join(snapshotmeta.JobDir(reply.Job), snapshotmeta.Dir(after))
		got, positions, err := randomjob.ReadState(t.Context(), c.Store(), dir, p)
		if err != nil {
			t.Fatal(err)
		}
		if p.Sleep == 0 {
			if diff := randomjob.Diff(got, randomjob.ExpectedAt(p, positions)); diff != "" {
				t.Fatalf("aligned checkpoint %d at %v: %s", after, positions, diff)
			}
		}
		if half == "" && len(got) > 0 {
			half, at = c.Store().Location()+"/"+dir, after
		}
		if diff = randomjob.Diff(got, want); diff == "" {
			break
		}
	}
	if diff != "" {
		t.Fatalf("after checkpoint %d: %s\n%v", after, diff, p.Plan().Nodes)
	}
	if err := c.Gateway().Cancel(t.Context(), reply.Job.String()); err != nil {
		t.Fatal(err)
	}
	return half, at
}
