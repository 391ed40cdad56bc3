package jobs_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/connector/generator"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/minicluster"
	"github.com/weirflow/weir/rpc"
)

// joined is how many rows of the other stream each record of the second one meets.
const joined = 100_000

// join is a join of which one key has nearly all rows.
type join struct{ row []byte }

func (j join) ProcessFirst(*flow.Context[int64], int64, *flow.Out[[]byte]) error { return nil }

func (j join) ProcessSecond(_ *flow.Context[int64], _ int64, out *flow.Out[[]byte]) error {
	for range joined {
		out.Emit(j.row)
	}
	return nil
}

// skewedJoin makes more rows in a moment than the map behind it can take in a minute.
var skewedJoin = flow.Define("skewed-join", func(g *flow.Graph, _ struct{}) error {
	number := func(i int64) int64 { return i }
	first := flow.From(g, "first", generator.New(generator.Options{}, number))
	second := flow.From(g, "second", generator.New(generator.Options{}, number))
	key := func(int64) int64 { return 7 }
	in := flow.ConnectKeyed(flow.KeyBy(first, "first-key", key), flow.KeyBy(second, "second-key", key))
	rows := flow.CoProcess(in, "join", func(*flow.Setup) flow.CoProcessor[int64, int64, int64, []byte] {
		return join{bytes.Repeat([]byte("r"), 100)}
	})
	slow := flow.Map(flow.Rebalance(rows), "slow", func(r []byte) []byte { <-time.After(time.Millisecond); return r })
	flow.To(slow, "drop", flow.Discard[[]byte]())
	return nil
})

// TestBarriersDoNotPileUpBehindASkewedJoin (B09): sources without a limit, and a join whose
// records take more than a minute each downstream. Checkpoints go on, one at a time, what is in
// flight stays bounded, and the job can be stopped.
func TestBarriersDoNotPileUpBehindASkewedJoin(t *testing.T) {
	t.Parallel()
	c := minicluster.ForTest(t, minicluster.Options{Jobs: []flow.Job{skewedJoin}, Slots: 8})
	reply, err := c.Gateway().Submit(t.Context(), rpc.SubmitRequest{Entrypoint: "skewed-join", Name: "join", Options: map[string]string{
		"execution.checkpointing.interval": "20ms", "execution.checkpointing.unaligned.enabled": "true",
	}})
	if err != nil {
		t.Fatal(err)
	}
	var last weir.CheckpointID
	for range 10 {
		info, err := c.AwaitCheckpoint(t.Context(), reply.Job, last)
		if err != nil {
			t.Fatal(err)
		}
		last = info.ID
		// The rows of the records that the barriers found begun, and the pools.
		if info.Bytes > 4*joined*110 {
			t.Errorf("checkpoint %d has %d bytes", last, info.Bytes)
		}
	}
	list, err := c.Gateway().Checkpoints(t.Context(), reply.Job.String())
	if err != nil {
		t.Fatal(err)
	}
	pending := 0
	for _, info := range list.Recent {
		if info.Status == rpc.CheckpointPending {
			pending++
		}
	}
	if pending > 1 {
		t.Errorf("%d checkpoints are pending", pending)
	}
	if err := c.Gateway().Cancel(t.Context(), reply.Job.String()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Await(t.Context(), reply.Job, func(d rpc.JobDetail) bool { return d.Status == rpc.JobCanceled }); err != nil {
		t.Fatal(err)
	}
}
