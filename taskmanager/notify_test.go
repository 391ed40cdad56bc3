package taskmanager_test

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/taskmanager"
)

// A commit that hangs does not hold up checkpoints for ever (field report B16): its operator
// is named, the task fails, and when the code does not return even then the process is to end.
func TestNotificationThatHangsIsNamedAndFails(t *testing.T) {
	logged, logs := observer.New(zap.WarnLevel)
	inCluster(t, 1, func(o *taskmanager.Options) { o.Logger = zap.New(logged) }, func(c *cluster) {
		hang := make(chan struct{})
		c.catalog.silent = true
		c.catalog.notify = func() { <-hang }
		j := c.newJob(1, 1)
		j.deploy(0, nil)
		c.heard(time.Second)
		w, a := c.workers[0], j.attempt(1, 0)
		w.say(rpc.NotifyCheckpointComplete{Attempt: a, Checkpoint: 3})
		c.heard(29 * time.Second)
		if n := logs.Len(); n > 0 {
			t.Errorf("%d warnings early", n)
		}
		j.trigger(4)
		all := c.heard(2 * time.Second)
		if acks := of[rpc.AcknowledgeCheckpoint](all); len(acks) != 1 || acks[0].Attempt == a {
			t.Errorf("acknowledged while %v hangs: %v", a, acks)
		}
		if l := logs.FilterMessageSnippet("later checkpoints wait").All(); len(l) != 1 || l[0].ContextMap()["operator"] != "commit" || l[0].ContextMap()["checkpoint"] != int64(3) {
			t.Errorf("logged: %v", l)
		}
		c.expectStates(a, c.heard(9*time.Minute), []rpc.TaskState(nil)...)
		c.heard(30 * time.Second) // it is to stop
		if s := w.escalated(); len(s) > 0 {
			t.Errorf("escalated early: %v", s)
		}
		c.heard(31 * time.Second)
		if s := w.escalated(); len(s) != 1 || !strings.Contains(s[0], "count[0]") || !strings.Contains(s[0], "NotifyComplete") {
			t.Errorf("escalated %q", s)
		}
		close(hang)
		f := c.expectStates(a, c.heard(time.Second), rpc.TaskFailed)
		if f == nil || f.Operator != "commit" || f.Fault != weir.FaultUser || !strings.Contains(f.Message, "a completed checkpoint, 3: the operator has not returned for 10m0s") {
			t.Errorf("failure %+v", f)
		}
	})
}

// A task that hangs in a notification can be cancelled, and one that took long and returned
// in time has not failed.
func TestNotificationThatIsSlow(t *testing.T) {
	inCluster(t, 1, nil, func(c *cluster) {
		hang := make(chan struct{})
		c.catalog.silent = true
		c.catalog.notify = func() { <-hang }
		j := c.newJob(1, 1)
		j.deploy(0, nil)
		c.heard(time.Second)
		w, a := c.workers[0], j.attempt(1, 0)
		w.say(rpc.NotifyCheckpointComplete{Attempt: a, Checkpoint: 3})
		c.heard(9 * time.Minute)
		hang <- struct{}{}
		j.trigger(4)
		all := c.heard(9 * time.Minute)
		if acks := of[rpc.AcknowledgeCheckpoint](all); len(acks) != 2 {
			t.Errorf("%d acknowledgements of the checkpoint after it: %v", len(acks), all)
		}
		w.say(rpc.NotifyCheckpointAborted{Attempt: a, Checkpoint: 5, LatestCompleted: 3})
		c.heard(time.Second)
		j.cancel()
		close(hang)
		c.expectStates(a, c.heard(time.Second), rpc.TaskCanceling, rpc.TaskCanceled)
	})
}
