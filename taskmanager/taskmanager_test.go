package taskmanager_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/snapshotmeta"
	"github.com/weirflow/weir/statebackend"
	"github.com/weirflow/weir/statebackend/heap"
	"github.com/weirflow/weir/taskmanager"
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

// TestCheckpointIsConsistentAndRestores takes a checkpoint in the middle, kills all,
// and starts from it: every number is counted once.
func TestCheckpointIsConsistentAndRestores(t *testing.T) {
	inCluster(t, 2, nil, func(c *cluster) {
		c.catalog.interval = time.Millisecond
		j := c.newJob(2, 2)
		j.deploy(0, nil)
		c.heard(300 * time.Millisecond)
		j.trigger(1)
		all := c.heard(100 * time.Millisecond)
		acks := of[rpc.AcknowledgeCheckpoint](all)
		if len(acks) != 4 {
			t.Fatalf("%d acknowledgements, want 4: %v", len(acks), all)
		}
		if got := len(of[rpc.BarrierSent](all)); got != 2 {
			t.Errorf("%d barriers sent, want 2", got)
		}
		emitted, counted := c.positions(acks), c.counted(acks)
		if emitted != counted || emitted == 0 || emitted == uint64(2*c.catalog.limit) {
			t.Errorf("sources had emitted %d, %d were counted", emitted, counted)
		}
		for _, a := range acks {
			if a.Metrics.StateBytes == 0 || a.Metrics.SyncDuration < 0 {
				t.Errorf("%v: metrics %+v", a.Attempt, a.Metrics)
			}
		}
		j.cancel()
		all = c.heard(time.Second)
		for v := range 2 {
			for i := range 2 {
				c.expectStates(j.attempt(v, i), all, rpc.TaskCanceling, rpc.TaskCanceled)
			}
		}

		c.catalog.counts, c.catalog.sums = map[uint64]uint64{}, 0
		j.n++
		j.deploy(1, acks)
		all = c.heard(5 * time.Second)
		for i := range 2 {
			c.expectStates(j.attempt(1, i), all, rpc.TaskInitializing, rpc.TaskRunning, rpc.TaskFinished)
		}
		if want := uint64(2 * c.catalog.limit * (c.catalog.limit - 1) / 2); c.catalog.sums != want {
			t.Errorf("counted %d after the restore, want %d", c.catalog.sums, want)
		}
	})
}

// positions is how many numbers the sources had emitted at a checkpoint.
func (c *cluster) positions(acks []rpc.AcknowledgeCheckpoint) (n uint64) {
	for _, a := range acks {
		for _, op := range a.State.Operators {
			for _, h := range op.Elements {
				n += binary.LittleEndian.Uint64(c.read(h))
			}
		}
	}
	return n
}

// counted is how many numbers had been counted at a checkpoint.
func (c *cluster) counted(acks []rpc.AcknowledgeCheckpoint) (n uint64) {
	c.t.Helper()
	for _, a := range acks {
		for _, op := range a.State.Operators {
			if len(op.Keyed) == 0 {
				continue
			}
			b, err := heap.NewFactory(c.pages).New(statebackend.Options{MaxParallelism: 128, KeyGroups: op.Keyed[0].Range})
			if err != nil {
				c.t.Fatal(err)
			}
			open := func(_ context.Context, h weir.StateHandle) (io.ReadCloser, error) {
				return io.NopCloser(bytes.NewReader(c.read(h))), nil
			}
			if err := b.Restore(c.t.Context(), op.Keyed, open); err != nil {
				c.t.Fatal(err)
			}
			table, err := b.Table(statebackend.Descriptor{Name: "n", FixedSize: 16})
			if err != nil {
				c.t.Fatal(err)
			}
			table.Scan(func(_ weir.KeyGroup, _, _, v []byte) bool { n += binary.LittleEndian.Uint64(v); return true })
			if err := b.Close(); err != nil {
				c.t.Fatal(err)
			}
		}
	}
	return n
}

func (c *cluster) read(h weir.StateHandle) []byte {
	c.t.Helper()
	r, err := snapshotmeta.OpenHandle(c.t.Context(), c.store, "job", h)
	if err != nil {
		c.t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		c.t.Fatal(err)
	}
	return b
}

// TestQueuedBytesPredictTheDuration is the demo's judgement: under back pressure, what
// was queued ahead of the barriers, divided by the drain rate, is how long they took.
func TestQueuedBytesPredictTheDuration(t *testing.T) {
	inCluster(t, 2, nil, func(c *cluster) {
		c.catalog.limit, c.catalog.size, c.catalog.perCount = 1<<30, 1000, 5*time.Millisecond
		j := c.newJob(2, 2)
		j.deploy(0, nil)
		c.heard(20 * time.Second)
		for id := weir.CheckpointID(1); id <= 5; id++ {
			triggered := time.Now()
			j.trigger(id)
			var acks []rpc.AcknowledgeCheckpoint
			for len(acks) < 4 && time.Since(triggered) < time.Minute {
				acks = append(acks, of[rpc.AcknowledgeCheckpoint](c.heard(10*time.Millisecond))...)
			}
			took := time.Since(triggered).Seconds()
			if len(acks) != 4 {
				t.Fatalf("%d acknowledgements", len(acks))
			}
			predicted := 0.0
			for _, a := range acks {
				if a.Metrics.DrainRate > 0 {
					predicted = max(predicted, float64(a.Metrics.QueuedBytes)/a.Metrics.DrainRate)
				}
			}
			if r := took / predicted; r < 0.9 || r > 1.1 {
				t.Errorf("checkpoint %d took %.3f s, predicted %.3f s: %.2f", id, took, predicted, r)
			}
			if took < 0.5 {
				t.Errorf("checkpoint %d took %.3f s: no back pressure", id, took)
			}
			c.heard(3 * time.Second)
		}
		j.cancel()
	})
}

func TestTriggerBeforeRunningIsDeclined(t *testing.T) {
	t.Run("O-TSK-05_not_ready", func(t *testing.T) {
		inCluster(t, 1, nil, func(c *cluster) {
			c.catalog.build = func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
			j := c.newJob(1, 1)
			j.deploy(0, nil)
			j.trigger(1)
			declines := of[rpc.DeclineCheckpoint](c.heard(time.Second))
			if len(declines) != 1 || declines[0].Reason != weir.CheckpointDeclinedTaskNotReady || declines[0].Checkpoint != 1 {
				t.Errorf("got %+v", declines)
			}
			j.cancel()
			c.expectStates(j.attempt(0, 0), c.heard(time.Second), rpc.TaskCanceling, rpc.TaskCanceled)
			j.trigger(2) // of an attempt that has ended
			if declines := of[rpc.DeclineCheckpoint](c.heard(time.Second)); len(declines) != 1 {
				t.Errorf("got %+v", declines)
			}
		})
	})
}

// TestBadDeployments are refused or fail, with a word on why, and nobody else is harmed.
func TestBadDeployments(t *testing.T) {
	for _, tt := range []struct {
		name    string
		prepare func(c *cluster, j *job)
		says    string
		noRetry bool
		fault   weir.Fault
	}{
		{"another graph", func(c *cluster, _ *job) {
			c.catalog.edit = func(l *jobgraph.Logical) { l.Operators[1].Name = "sum" }
		}, `graph mismatch: the job's builder made another graph here than in the JobManager: line`, true, weir.FaultUser},
		{"builder that blocks", func(c *cluster, _ *job) {
			c.catalog.build = func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
		}, "did not return within 30s", false, weir.FaultUser},
		{"builder that fails", func(c *cluster, _ *job) {
			c.catalog.build = func(context.Context) error { return errors.New("no such topic") }
		}, "no such topic", false, weir.FaultUser},
		{"unknown entry point", func(_ *cluster, j *job) {
			j.edit = func(d *rpc.TaskDeployment) { d.Entrypoint = "jog" }
		}, `there is: job`, true, weir.FaultUser},
		{"other code", func(_ *cluster, j *job) {
			j.edit = func(d *rpc.TaskDeployment) { d.CodeID = "newer" }
		}, "needs code newer", false, weir.FaultSystem},
		{"unknown backend", func(_ *cluster, j *job) {
			j.edit = func(d *rpc.TaskDeployment) { d.Options.StateBackend = "rocks" }
		}, `no state backend is called "rocks"`, true, weir.FaultUser},
		{"no buffers", func(_ *cluster, j *job) {
			j.edit = func(d *rpc.TaskDeployment) {
				for i := range d.Outputs {
					d.Outputs[i].Consumers = slices.Repeat(d.Outputs[i].Consumers, 1000)
				}
				for i := range d.Inputs {
					d.Inputs[i].Channels = slices.Repeat(d.Inputs[i].Channels, 1000)
				}
			}
		}, "network buffers", false, weir.FaultSystem},
		{"vertex that is not there", func(_ *cluster, j *job) {
			j.edit = func(d *rpc.TaskDeployment) { d.Attempt.Vertex += 5 }
		}, "deployment of vertex", true, weir.FaultSystem},
		{"input without channels", func(_ *cluster, j *job) {
			j.edit = func(d *rpc.TaskDeployment) { d.Inputs = nil; d.Outputs = nil }
		}, "inputs and 0 outputs", true, weir.FaultSystem},
		{"lost state", func(_ *cluster, j *job) {
			j.edit = func(d *rpc.TaskDeployment) {
				d.Restore = []weir.OperatorSubtaskState{{
					Operator: weir.OperatorIDOf("count"), Name: "count",
					Keyed:    []weir.KeyedStateHandle{{Backend: heap.Name, Handle: weir.StateHandle{File: "chk-1/gone", Length: 10}}},
					Elements: []weir.StateHandle{{File: "chk-1/gone", Length: 10}},
				}}
			}
		}, "blob not found", false, weir.FaultOutside},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inCluster(t, 1, nil, func(c *cluster) {
				j := c.newJob(1, 1)
				tt.prepare(c, j)
				j.deploy(0, nil)
				all := c.heard(40 * time.Second)
				var found *weir.Failure
				for _, m := range of[rpc.TaskStateChanged](all) {
					if m.State == rpc.TaskFailed && strings.Contains(m.Failure.Message, tt.says) {
						found = m.Failure
					}
				}
				if found == nil {
					t.Fatalf("nobody said %q: %+v", tt.says, all)
				}
				if found.NoRetry != tt.noRetry || found.Fault != tt.fault {
					t.Errorf("failure %+v", found)
				}
				j.cancel()
				c.heard(time.Second)

				// The next job runs.
				c.catalog.edit, c.catalog.build = nil, nil
				next := c.newJob(1, 1)
				next.n = 2
				next.deploy(0, nil)
				c.expectStates(next.attempt(1, 0), c.heard(5*time.Second), rpc.TaskInitializing, rpc.TaskRunning, rpc.TaskFinished)
			})
		})
	}
}

func TestWhatGoesWrongInUserCodeFailsItsTask(t *testing.T) {
	for name, process := range map[string]func(int, uint64) error{
		"panic": func(_ int, n uint64) error {
			if n == 500 {
				panic("five hundred")
			}
			return nil
		},
		"error": func(_ int, n uint64) error {
			if n == 500 {
				return errors.New("five hundred")
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, 2, nil, func(c *cluster) {
				c.catalog.process, c.catalog.interval = process, time.Millisecond
				j := c.newJob(1, 1)
				j.deploy(0, nil)
				f := c.expectStates(j.attempt(1, 0), c.heard(5*time.Second), rpc.TaskInitializing, rpc.TaskRunning, rpc.TaskFailed)
				if f == nil || f.Operator != "count" || f.Fault != weir.FaultUser || !strings.Contains(f.Message, "five hundred") {
					t.Errorf("failure %+v", f)
				}
				if name == "panic" && (f == nil || !strings.Contains(f.Stack, "taskmanager_test.go")) {
					t.Errorf("failure %+v", f)
				}
			})
		})
	}
}

// TestLostProducerIsNamed fails a source; its consumer says whose fault that is.
func TestLostProducerIsNamed(t *testing.T) {
	inCluster(t, 2, nil, func(c *cluster) {
		c.catalog.interval = time.Millisecond
		j := c.newJob(2, 1)
		j.deploy(0, nil)
		c.heard(100 * time.Millisecond)
		c.network.Cut("tm0", "tm1")
		f := c.expectStates(j.attempt(1, 0), c.heard(time.Second), rpc.TaskFailed)
		if f == nil || f.Cause != j.attempt(0, 1) {
			t.Errorf("failure %+v, want one caused by %v", f, j.attempt(0, 1))
		}
	})
}

func TestSecondDeploymentIsIgnoredAndSlotsAreBounded(t *testing.T) {
	inCluster(t, 1, nil, func(c *cluster) {
		c.catalog.silent = true
		j := c.newJob(2, 2)
		j.deploy(0, nil)
		j.deploy(0, nil)
		all := c.heard(time.Second)
		for v := range 2 {
			for i := range 2 {
				c.expectStates(j.attempt(v, i), all, rpc.TaskInitializing, rpc.TaskRunning)
			}
		}
		other := c.newJob(1, 1)
		other.id = weir.JobID{8}
		other.deploy(0, nil)
		f := c.expectStates(other.attempt(0, 0), c.heard(time.Second), rpc.TaskFailed)
		if f == nil || !strings.Contains(f.Message, "no free slot") {
			t.Errorf("failure %+v", f)
		}
		j.cancel()
		c.heard(time.Second)
		other.n = 2
		other.deploy(0, nil)
		c.expectStates(other.attempt(0, 0), c.heard(time.Second), rpc.TaskInitializing, rpc.TaskRunning)
	})
}

// TestCancelUnderBackPressure cancels while the source waits in the middle of a record.
func TestCancelUnderBackPressure(t *testing.T) {
	inCluster(t, 2, nil, func(c *cluster) {
		c.catalog.limit, c.catalog.size, c.catalog.perCount = 1<<30, 200_000, time.Second
		j := c.newJob(1, 1)
		j.deploy(0, nil)
		c.heard(20 * time.Second)
		begun := time.Now()
		j.cancel()
		synctest.Wait()
		all := c.heard(0)
		c.expectStates(j.attempt(0, 0), all, rpc.TaskCanceling, rpc.TaskCanceled)
		if took := time.Since(begun); took > 0 {
			t.Errorf("the source took %v", took)
		}
		// The user's code is in the middle of a record.
		all = append(all, c.heard(time.Second)...)
		c.expectStates(j.attempt(1, 0), all, rpc.TaskCanceling, rpc.TaskCanceled)
	})
}

func TestUserCodeThatDoesNotReturnIsNamed(t *testing.T) {
	inCluster(t, 1, nil, func(c *cluster) {
		stuck := make(chan struct{})
		c.catalog.process = func(_ int, n uint64) error {
			if n == 10 {
				<-stuck
			}
			return nil
		}
		j := c.newJob(1, 1)
		j.deploy(0, nil)
		c.heard(time.Second)
		j.cancel()
		c.heard(29 * time.Second)
		w := c.workers[0]
		if s := w.escalated(); len(s) > 0 {
			t.Errorf("escalated early: %v", s)
		}
		c.heard(2 * time.Second)
		if s := w.escalated(); len(s) != 1 || !strings.Contains(s[0], "count[0]") || !strings.Contains(s[0], "taskmanager_test") {
			t.Errorf("escalated %q", s)
		}
		close(stuck)
		c.expectStates(j.attempt(1, 0), c.heard(time.Second), rpc.TaskCanceled)
	})
}

func TestNotificationsReachOperators(t *testing.T) {
	inCluster(t, 1, nil, func(c *cluster) {
		c.catalog.silent = true
		j := c.newJob(1, 1)
		j.deploy(0, nil)
		c.heard(time.Second)
		w, a := c.workers[0], j.attempt(1, 0)
		w.say(rpc.NotifyCheckpointComplete{Attempt: a, Checkpoint: 3})
		w.say(rpc.NotifyCheckpointComplete{Attempt: a, Checkpoint: 2})
		w.say(rpc.NotifyCheckpointAborted{Attempt: a, Checkpoint: 5, LatestCompleted: 4})
		c.heard(time.Second)
		if want := []string{"count complete 3", "count complete 4", "count aborted 5"}; !slices.Equal(c.catalog.told, want) {
			t.Errorf("got %q, want %q", c.catalog.told, want)
		}
	})
}

func TestEventsOfCoordinatorsAreConfirmed(t *testing.T) {
	inCluster(t, 1, nil, func(c *cluster) {
		c.catalog.silent = true
		j := c.newJob(1, 1)
		j.deploy(0, nil)
		c.heard(time.Second)
		w, op := c.workers[0], weir.OperatorIDOf("numbers")
		w.say(rpc.OperatorEvent{Attempt: j.attempt(0, 0), Operator: op, Seq: 1, Event: []byte("split")})
		gone := j.attempt(0, 0)
		gone.N = 99
		w.say(rpc.OperatorEvent{Attempt: gone, Operator: op, Seq: 2, Event: []byte("lost")})
		acks := of[rpc.OperatorEventAck](c.heard(time.Second))
		slices.SortFunc(acks, func(a, b rpc.OperatorEventAck) int { return int(a.Seq) - int(b.Seq) })
		if len(acks) != 2 || acks[0].Error != "" || acks[1].Error == "" || !slices.Equal(c.catalog.events, []string{"split"}) {
			t.Errorf("acks %+v, events %q", acks, c.catalog.events)
		}
	})
}

func TestTimersFireInTime(t *testing.T) {
	inCluster(t, 1, nil, func(c *cluster) {
		c.catalog.timers, c.catalog.silent, c.catalog.interval, c.catalog.limit = true, true, 10*time.Millisecond, 200
		j := c.newJob(1, 1)
		j.deploy(0, nil)
		c.heard(5 * time.Second)
		c.catalog.mu.Lock()
		defer c.catalog.mu.Unlock()
		if len(c.catalog.fired) < 100 {
			t.Fatalf("%d timers fired", len(c.catalog.fired))
		}
		for _, late := range c.catalog.fired {
			if late < 0 || late > 5*time.Millisecond {
				t.Errorf("fired %v late", late)
			}
		}
	})
}

func TestFinalStateIsRepeatedUntilForgotten(t *testing.T) {
	inCluster(t, 1, nil, func(c *cluster) {
		j := c.newJob(1, 1)
		j.deploy(0, nil)
		c.heard(time.Second)
		w := c.workers[0]
		reconnect := func() []rpc.Message {
			w.hangUp()
			return c.heard(10 * time.Second)
		}
		all := reconnect()
		if r := of[rpc.Register](all); len(r) != 1 || len(r[0].Running) > 0 {
			t.Errorf("registered %+v", r)
		}
		c.expectStates(j.attempt(1, 0), all, rpc.TaskFinished)
		w.say(rpc.Forget{Attempt: j.attempt(1, 0)})
		c.heard(time.Second)
		all = reconnect()
		c.expectStates(j.attempt(1, 0), all)
		c.expectStates(j.attempt(0, 0), all, rpc.TaskFinished)
	})
}

func TestTasksOutliveTheSessionForAGraceTime(t *testing.T) {
	inCluster(t, 1, nil, func(c *cluster) {
		c.catalog.silent = true
		j := c.newJob(1, 1)
		j.deploy(0, nil)
		c.heard(time.Second)
		w := c.workers[0]
		c.refuse.Store(true)
		w.hangUp()
		c.heard(50 * time.Second)
		c.refuse.Store(false)
		all := c.heard(5 * time.Second)
		if r := of[rpc.Register](all); len(r) != 1 || len(r[0].Running) != 2 {
			t.Errorf("registered %+v, want with two that run", r)
		}
		c.expectStates(j.attempt(1, 0), all, rpc.TaskRunning)

		c.refuse.Store(true)
		w.hangUp()
		c.heard(65 * time.Second)
		c.refuse.Store(false)
		f := c.expectStates(j.attempt(1, 0), c.heard(5*time.Second), rpc.TaskFailed)
		if f == nil || !strings.Contains(f.Message, "no job manager for 1m0s") {
			t.Errorf("failure %+v", f)
		}
	})
}

// TestSilentJobManagerIsGivenUp lets the JobManager say nothing, first to heartbeats, then
// to a registration.
func TestSilentJobManagerIsGivenUp(t *testing.T) {
	inCluster(t, 1, nil, func(c *cluster) {
		c.mute.Store(true)
		c.heard(9 * time.Second)
		w := c.workers[0]
		if !w.connected() {
			t.Error("gave up early")
		}
		if r := of[rpc.Register](c.heard(30 * time.Second)); len(r) < 2 {
			t.Errorf("registered %d times, want again and again", len(r))
		}
		c.mute.Store(false)
		c.heard(30 * time.Second)
		j := c.newJob(1, 1)
		j.deploy(0, nil)
		c.expectStates(j.attempt(1, 0), c.heard(time.Second), rpc.TaskInitializing, rpc.TaskRunning, rpc.TaskFinished)
	})
}

func TestEpochsFence(t *testing.T) {
	inCluster(t, 1, nil, func(c *cluster) {
		c.catalog.silent = true
		j := c.newJob(1, 1)
		old := j.deployment(0, 0)
		old.Attempt.Epoch = 6
		w := c.workers[0]
		w.say(rpc.Deploy{Deployment: old})
		if states, _ := c.states(old.Attempt, c.heard(time.Second)); len(states) > 0 {
			t.Errorf("an old leader's deployment ran: %v", states)
		}
		j.deploy(0, nil)
		running := j.attempt(1, 0)
		c.heard(time.Second)

		// An older leader cannot have us.
		c.setEpoch(6)
		w.hangUp()
		all := c.heard(time.Second)
		if len(of[rpc.Register](all)) == 0 {
			t.Error("did not register")
		}
		if states, _ := c.states(running, all); len(states) > 0 {
			t.Errorf("an old leader was told of %v", states)
		}
		// A newer one cancels what runs.
		c.setEpoch(8)
		all = c.heard(10 * time.Second)
		c.expectStates(running, all, rpc.TaskRunning, rpc.TaskCanceling, rpc.TaskCanceled)
		w.say(rpc.TriggerCheckpoint{Attempt: running, Barrier: weir.Barrier{ID: 1}})
		if d := of[rpc.DeclineCheckpoint](c.heard(time.Second)); len(d) != 1 {
			t.Errorf("got %+v", d)
		}
	})
}

func TestCancelOfAnUnknownAttemptIsAnswered(t *testing.T) {
	inCluster(t, 1, nil, func(c *cluster) {
		a := c.newJob(1, 1).attempt(0, 0)
		c.workers[0].say(rpc.Cancel{Attempt: a})
		c.expectStates(a, c.heard(time.Second), rpc.TaskCanceled)
	})
}

func TestHeartbeatsCarryFigures(t *testing.T) {
	inCluster(t, 1, nil, func(c *cluster) {
		c.catalog.limit, c.catalog.perCount = 1<<30, 5*time.Millisecond
		j := c.newJob(1, 1)
		j.deploy(0, nil)
		c.heard(10 * time.Second)
		c.workers[0].mu.Lock()
		beats := c.workers[0].beats
		c.workers[0].mu.Unlock()
		if len(beats) == 0 || len(beats[len(beats)-1].Tasks) != 2 {
			t.Fatalf("heartbeats %+v", beats)
		}
		for _, s := range beats[len(beats)-1].Tasks {
			switch {
			case s.Attempt == j.attempt(0, 0) && (s.BackPressured < 0.9 || s.RecordsOut == 0 || s.BytesQueuedOut == 0):
				t.Errorf("source: %+v", s)
			case s.Attempt == j.attempt(1, 0) && (s.BusyRatio < 0.9 || s.RecordsIn == 0 || s.BytesIn == 0):
				t.Errorf("count: %+v", s)
			}
		}
	})
}

func TestCloseCancelsWhatRuns(t *testing.T) {
	inCluster(t, 2, nil, func(c *cluster) {
		c.catalog.limit, c.catalog.perCount = 1<<30, 5*time.Millisecond
		j := c.newJob(2, 2)
		j.deploy(0, nil)
		c.heard(2 * time.Second)
		j.trigger(1)
		c.heard(10 * time.Millisecond)
		// The rest is what inCluster checks.
	})
}

func TestOptionsSayAllThatIsWrong(t *testing.T) {
	t.Parallel()
	_, err := taskmanager.New(taskmanager.Options{Slots: -1})
	for _, want := range []string{"-1 slots", "no catalog", "no network stack", "no checkpoint store", "no state backend", "no dialer"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}
