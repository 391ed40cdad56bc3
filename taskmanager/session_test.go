package taskmanager_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/taskmanager"
)

// shortDialer opens sessions of which the first few end before the caller has them.
type shortDialer struct {
	inner rpc.Dialer
	mu    sync.Mutex
	short int
	dials int
}

func (d *shortDialer) Dial(ctx context.Context, h rpc.SessionHandler) (rpc.Session, error) {
	s, err := d.inner.Dial(ctx, h)
	d.mu.Lock()
	d.dials++
	short := d.dials <= d.short
	d.mu.Unlock()
	if err == nil && short {
		s.Close(errors.New("short"))
		<-time.After(time.Millisecond) // Closed comes first
	}
	return s, err
}

func TestSessionThatEndedBeforeItWasKnownIsReplaced(t *testing.T) {
	var d *shortDialer
	inCluster(t, 1, func(o *taskmanager.Options) {
		d = &shortDialer{inner: o.Dialer, short: 3}
		o.Dialer = d
	}, func(c *cluster) {
		c.heard(20 * time.Second)
		if !c.workers[0].connected() {
			t.Error("not connected")
		}
		if d.dials != 4 {
			t.Errorf("dialled %d times, want 4", d.dials)
		}
	})
}

func TestRefusedRegistrationIsRepeatedMoreAndMoreSeldom(t *testing.T) {
	inCluster(t, 1, nil, func(c *cluster) {
		c.heard(time.Second)
		c.refusing.Store(true)
		c.workers[0].hangUp()
		if n := len(of[rpc.Register](c.heard(time.Minute))); n < 5 || n > 60 {
			t.Errorf("registered %d times in a minute", n)
		}
		c.refusing.Store(false)
		c.heard(10 * time.Second)
		j := c.newJob(1, 1)
		j.deploy(0, nil)
		c.expectStates(j.attempt(1, 0), c.heard(time.Second), rpc.TaskInitializing, rpc.TaskRunning, rpc.TaskFinished)
	})
}

func TestJobIsGoneSomeTimeAfterItsLastAttempt(t *testing.T) {
	var mu sync.Mutex
	var gone []weir.JobID
	inCluster(t, 1, func(o *taskmanager.Options) {
		o.JobGone = func(id weir.JobID) {
			mu.Lock()
			defer mu.Unlock()
			gone = append(gone, id)
		}
	}, func(c *cluster) {
		run := func(n int32) *job {
			j := c.newJob(1, 1)
			j.n = n
			j.deploy(0, nil)
			c.heard(5 * time.Second)
			for v := range 2 {
				c.workers[0].say(rpc.Forget{Attempt: j.attempt(v, 0)})
			}
			return j
		}
		expect := func(after time.Duration, want ...weir.JobID) {
			t.Helper()
			c.heard(after)
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(gone, want) {
				t.Errorf("gone %v, want %v", gone, want)
			}
		}
		run(1)
		expect(90 * time.Second)
		j := run(2) // a restart
		expect(90 * time.Second)
		expect(10*time.Minute, j.id)
	})
}
