package checkpointdemo

import (
	"maps"
	"path"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/minicluster"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/snapshotmeta"
)

// TestCheckpointsHoldTheClosedForm runs the job in a cluster, starts it again from a
// checkpoint taken halfway, and compares the state at its end with the closed form.
func TestCheckpointsHoldTheClosedForm(t *testing.T) {
	c := minicluster.ForTest(t, minicluster.Options{Jobs: []flow.Job{Job}, TaskManagers: 2, Slots: 2})
	const records, keys = 4000, 16
	// after is the checkpoint that the job starts from; its last one until it has its own.
	submit := func(name, from string, after weir.CheckpointID) (half string, at weir.CheckpointID) {
		var last map[string]Tally
		reply, err := c.Gateway().Submit(t.Context(), rpc.SubmitRequest{
			Entrypoint: Name, Name: name, From: from, Params: map[string]string{"records": "4000", "rate": "8000"},
			Options: map[string]string{"execution.checkpointing.interval": "20ms", "execution.checkpointing.num-retained": "100"},
		})
		if err != nil {
			t.Fatal(err)
		}
		for {
			d, err := c.Await(t.Context(), reply.Job, func(d rpc.JobDetail) bool { return d.LastCheckpoint > after })
			if err != nil {
				t.Fatal(err)
			}
			after = d.LastCheckpoint
			dir := path.Join(snapshotmeta.JobDir(reply.Job), snapshotmeta.Dir(after))
			if last, err = ReadState(t.Context(), c.Store(), dir); err != nil {
				t.Fatal(err)
			}
			n := int64(0)
			for _, tally := range last {
				n += tally.Count
			}
			// Barriers were aligned: what was emitted before them was processed.
			flight, err := ReadInFlight(t.Context(), c.Store(), dir)
			if err != nil || flight != (InFlight{Emitted: n, Processed: n}) {
				t.Fatalf("%d records were counted; in flight: %+v, %v", n, flight, err)
			}
			if half == "" && n > 0 {
				half, at = c.Store().Location()+"/"+dir, after
				if n == records {
					t.Fatal("no checkpoint was taken halfway")
				}
			}
			if n > records {
				t.Fatalf("%d records were counted", n)
			}
			if n == records {
				break
			}
		}
		if want := Expected(records, keys); !maps.Equal(last, want) {
			t.Errorf("%s: state %v, want %v", name, last, want)
		}
		if err := c.Gateway().Cancel(t.Context(), reply.Job.String()); err != nil {
			t.Fatal(err)
		}
		return half, at
	}
	half, at := submit("first", "", weir.NoCheckpoint)
	submit("second", half, at)
}
