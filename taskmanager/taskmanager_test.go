package taskmanager_test

import (
	"testing"
	"time"

	"github.com/weirflow/weir/rpc"
)

func TestJobRunsToItsEnd(t *testing.T) {
	inCluster(t, 2, nil, func(c *cluster) {
		j := c.newJob(2, 2)
		j.deploy(0, nil)
		all := c.heard(5 * time.Second)
		for v := range 2 {
			for i := range 2 {
				c.expectStates(j.attempt(v, i), all, rpc.TaskInitializing, rpc.TaskRunning, rpc.TaskFinished)
			}
		}
		if want := uint64(2 * c.catalog.limit * (c.catalog.limit - 1) / 2); c.catalog.sums != want {
			t.Errorf("counted %d, want %d", c.catalog.sums, want)
		}
	})
}
