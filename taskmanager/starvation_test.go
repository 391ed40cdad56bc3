package taskmanager_test

import (
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/rpc"
)

// TestABegunRecordIsEndedForABarrier: a source that waits in the middle of a record, which
// is larger than all buffers that it may have, emits its barrier although its consumer
// takes nothing (behaviour §14).
func TestABegunRecordIsEndedForABarrier(t *testing.T) {
	for name, options := range map[string]weir.CheckpointOptions{
		"unaligned": {Alignment: weir.Unaligned},
		"times out": {Timeout: 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, 1, nil, func(c *cluster) {
				c.catalog.size, c.catalog.limit, c.catalog.silent = 300_000, 50, true
				c.catalog.perCount = 30 * time.Second
				j := c.newOvertakingJob(1, 1)
				edit := j.edit
				j.edit = func(d *rpc.TaskDeployment) {
					edit(d)
					d.Options.BuffersPerOutput, d.Options.OverdraftBuffers, d.Options.ChannelStateSubtasks = 1, 0, 1
				}
				j.deploy(0, nil)
				c.heard(5 * time.Second)
				w := c.workers[0]
				before := w.stack.Stats()
				if before.ExcessBuffers != 0 {
					t.Errorf("%d buffers exceed the pools, and no barrier waits", before.ExcessBuffers)
				}

				j.triggerWith(1, options)
				acks := of[rpc.AcknowledgeCheckpoint](c.heard(time.Second))
				if len(acks) != 1 || acks[0].Attempt.Vertex != 0 {
					t.Fatalf("acknowledged within a second: %v", acks)
				}
				const segments = 300_000/32_704 + 1
				if got := w.stack.Stats().ExcessBuffers; got < segments-3 || got > segments {
					t.Errorf("%d buffers exceed the pools, of a record of %d segments", got, segments)
				}
				c.heard(time.Second)
				j.triggerWith(2, options) // between records no more is begun
				if got := w.stack.Stats().ExcessBuffers; got > segments {
					t.Errorf("%d buffers exceed the pools after a second barrier", got)
				}
				c.heard(3 * time.Minute)
				if got := w.stack.Stats().ExcessBuffers; got != 0 {
					t.Errorf("%d buffers exceed the pools after the record was read", got)
				}
			})
		})
	}
}
