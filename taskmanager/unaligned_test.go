package taskmanager_test

import (
	"fmt"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/metrics"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/snapshotmeta"
	"github.com/weirflow/weir/taskmanager"
)

// newOvertakingJob is a job whose barriers may overtake data.
func (c *cluster) newOvertakingJob(p, q int) *job {
	j := c.newJob(p, q)
	j.edit = func(d *rpc.TaskDeployment) { d.Options.Unaligned = true }
	return j
}

// triggerWith starts a checkpoint at all sources.
func (j *job) triggerWith(id weir.CheckpointID, o weir.CheckpointOptions) {
	o.Location = fmt.Sprintf("chk-%d", id)
	for i := range j.graph.Vertices[0].Parallelism {
		j.workerOf(i).say(rpc.TriggerCheckpoint{Attempt: j.attempt(0, i), Barrier: weir.Barrier{ID: id, Options: o}})
	}
}

// restore deploys the job with what was acknowledged by another one, perhaps of other
// parallelism (behaviour §21).
func (j *job) restore(from weir.CheckpointID, old *job, acks []rpc.AcknowledgeCheckpoint) {
	edit := j.edit
	j.edit = func(d *rpc.TaskDeployment) {
		edit(d)
		d.RestoredFrom = from
		if d.Attempt.Vertex == 0 {
			for _, a := range acks {
				if a.Attempt.SubtaskID() == d.Attempt.SubtaskID() {
					d.Restore = a.State.Operators
				}
			}
			return
		}
		q := j.graph.Vertices[1].Parallelism
		own := weir.KeyGroupRangeOf(128, q, int(d.Attempt.Subtask))
		var channels []weir.ChannelStateHandle
		for _, a := range acks {
			channels = append(channels, a.State.Channels...)
			for _, op := range a.State.Operators {
				for _, k := range op.Keyed {
					if k.Range = k.Range.Intersect(own); k.Range.Len() > 0 {
						d.Restore = append(d.Restore, weir.OperatorSubtaskState{Operator: op.Operator, Name: op.Name, Keyed: []weir.KeyedStateHandle{k}, Schemas: op.Schemas})
					}
				}
			}
		}
		slices.SortFunc(channels, snapshotmeta.CompareChannels)
		d.Recovered = recovered(channels, old.graph.Vertices[1].Parallelism, q, own)
	}
	j.deploy(from, nil)
	j.edit = edit
}

func recovered(channels []weir.ChannelStateHandle, oldQ, q int, own weir.KeyGroupRange) (all []rpc.RecoveredChannel) {
	for _, h := range channels {
		old := weir.KeyGroupRangeOf(128, oldQ, int(h.Consumer))
		if old.Intersect(own).Len() == 0 {
			continue
		}
		i := slices.IndexFunc(all, func(r rpc.RecoveredChannel) bool { return r.Producer == h.Producer && r.Consumer == h.Consumer })
		if i < 0 {
			i = len(all)
			r := rpc.RecoveredChannel{Producer: h.Producer, Consumer: h.Consumer, Channel: -1, Filter: q != oldQ}
			if q == oldQ {
				r.Channel = int(h.Producer)
			}
			all = append(all, r)
		}
		all[i].Captured = append(all[i].Captured, h.Handle)
	}
	return all
}

// acksOf waits until so many subtasks have acknowledged a checkpoint.
func (c *cluster) acksOf(id weir.CheckpointID, n int, within time.Duration) (acks []rpc.AcknowledgeCheckpoint) {
	c.t.Helper()
	begun := time.Now()
	for time.Since(begun) < within {
		for _, m := range c.heard(5 * time.Millisecond) {
			switch m := m.(type) {
			case rpc.AcknowledgeCheckpoint:
				if m.Checkpoint == id {
					acks = append(acks, m)
				}
			case rpc.DeclineCheckpoint:
				if m.Checkpoint == id {
					c.t.Fatalf("declined: %+v", m)
				}
			case rpc.TaskStateChanged:
				if m.Failure != nil {
					c.t.Fatalf("failed: %v", m.Failure)
				}
			}
		}
		if len(acks) == n {
			return acks
		}
	}
	c.t.Fatalf("%d of %d acknowledged checkpoint %d within %v", len(acks), n, id, within)
	return nil
}

// TestInFlightDataComesBackOnce: under back pressure a checkpoint ends soon, what was in
// flight is in it, and after a restore every number is counted once.
func TestInFlightDataComesBackOnce(t *testing.T) {
	for _, x := range []struct {
		name    string
		size    int // of a record
		q, newQ int
		options weir.CheckpointOptions
		within  time.Duration
	}{
		{"small", 1000, 2, 2, overtaking, 20 * time.Millisecond},
		{"longer than a segment", 70_000, 2, 2, overtaking, 20 * time.Millisecond},
		{"more consumers", 1000, 2, 3, overtaking, 20 * time.Millisecond},
		{"fewer consumers, long records", 70_000, 3, 2, overtaking, 20 * time.Millisecond},
		{"one consumer", 3000, 3, 1, overtaking, 20 * time.Millisecond},
		{"timeout while aligning", 1000, 2, 2, mayTimeOut, 130 * time.Millisecond},
		{"timeout, long records, more consumers", 70_000, 2, 4, weir.CheckpointOptions{Timeout: 7 * time.Millisecond}, 30 * time.Millisecond},
	} {
		t.Run(x.name, func(t *testing.T) {
			inCluster(t, 2, nil, func(c *cluster) {
				c.catalog.size, c.catalog.perCount = x.size, 5*time.Millisecond
				c.catalog.limit = max(800, 3_000_000/x.size)
				j := c.newOvertakingJob(2, x.q)
				j.deploy(0, nil)
				c.heard(700 * time.Millisecond)
				j.triggerWith(1, x.options)
				acks := c.acksOf(1, 2+x.q, x.within)
				checkInFlight(c, acks, x.size)
				j.cancel()
				c.heard(time.Second)
				c.catalog.counts, c.catalog.sums, c.catalog.perCount = map[uint64]uint64{}, 0, 0
				j2 := c.newOvertakingJob(2, x.newQ)
				j2.n = 2
				j2.restore(1, j, acks)
				all := c.heard(time.Minute)
				for i := range x.newQ {
					c.expectStates(j2.attempt(1, i), all, rpc.TaskInitializing, rpc.TaskRunning, rpc.TaskFinished)
				}
				n := uint64(c.catalog.limit)
				if want := n * (n - 1); c.catalog.sums != want {
					t.Errorf("numbers counted add up to %d, want %d", c.catalog.sums, want)
				}
				for k, got := range c.catalog.counts {
					if want := 2 * ((n - k + keys - 1) / keys); got != want {
						t.Errorf("%d of key %d were counted, want %d", got, k, want)
					}
				}
			})
		})
	}
}

var (
	overtaking = weir.CheckpointOptions{Alignment: weir.Unaligned}
	mayTimeOut = weir.CheckpointOptions{Timeout: 100 * time.Millisecond}
)

// TestNoCheckpointWaitsForTheEndOfASecondRecord: a consumer takes its snapshot after the
// record that it is at, and acknowledges it in the middle of the next.
func TestNoCheckpointWaitsForTheEndOfASecondRecord(t *testing.T) {
	inCluster(t, 2, nil, func(c *cluster) {
		c.catalog.size, c.catalog.perCount, c.catalog.limit = 450, 50*time.Millisecond, 1<<30
		j := c.newOvertakingJob(2, 2)
		j.deploy(0, nil)
		c.heard(10 * time.Second)
		for id := weir.CheckpointID(1); id < 12; id++ {
			c.heard(time.Duration(id) * 103 * time.Millisecond)
			j.triggerWith(id, overtaking)
			c.acksOf(id, 4, 51*time.Millisecond)
		}
		j.cancel()
		c.heard(time.Second)
	})
}

// TestLateBarrierDoesNotFindTheNextRecordBegun: the sources' barriers come 0.4 ms after each
// other, and between them a record of 2 ms may end. The next one waits for the second
// barrier, so that a checkpoint takes at most what is left of a record.
func TestLateBarrierDoesNotFindTheNextRecordBegun(t *testing.T) {
	inCluster(t, 2, nil, func(c *cluster) {
		c.catalog.size, c.catalog.perCount, c.catalog.limit = 450, 2*time.Millisecond, 1<<30
		j := c.newOvertakingJob(2, 2)
		j.deploy(0, nil)
		c.heard(300 * time.Millisecond)
		trigger := func(source int, id weir.CheckpointID) {
			o := overtaking
			o.Location = fmt.Sprintf("chk-%d", id)
			j.workerOf(source).say(rpc.TriggerCheckpoint{Attempt: j.attempt(0, source), Barrier: weir.Barrier{ID: id, Options: o}})
		}
		for id := weir.CheckpointID(1); id < 60; id++ { // 0.1 ms later in a record each
			trigger(int(id)%2, id)
			c.heard(400 * time.Microsecond)
			trigger(1-int(id)%2, id)
			acks := 0
			for _, m := range c.heard(1700 * time.Microsecond) {
				if a, ok := m.(rpc.AcknowledgeCheckpoint); ok && a.Checkpoint == id {
					acks++
				}
			}
			late := c.heard(8 * time.Millisecond)
			if acks != 4 {
				t.Errorf("%d of 4 acknowledged checkpoint %d before a second record ended; then %v", acks, id, late)
			}
		}
		j.cancel()
		c.heard(time.Second)
	})
}

// checkInFlight compares what was captured with the numbers that were emitted and not
// counted.
func checkInFlight(c *cluster, acks []rpc.AcknowledgeCheckpoint, size int) {
	c.t.Helper()
	var captured int64
	unaligned := false
	for _, a := range acks {
		captured += a.Metrics.PersistedBytes
		unaligned = unaligned || a.Metrics.Unaligned
		if (a.Metrics.PersistedBytes == 0) != (len(a.State.Channels) == 0) {
			c.t.Errorf("%v: %d bytes in %d channels", a.Attempt, a.Metrics.PersistedBytes, len(a.State.Channels))
		}
	}
	between := int64(c.positions(acks)-c.counted(acks)) * int64(size)
	if between == 0 || !unaligned {
		c.t.Errorf("%d bytes were in flight, unaligned=%v", between, unaligned)
	}
	if captured < between || captured > between+between/5 {
		c.t.Errorf("%d bytes were captured, %d were in flight", captured, between)
	}
}

// TestAbortedCheckpointsDoNotDisturbTheNext takes one checkpoint after another, of which some are
// aborted by the JobManager while they are captured; the last one is restored.
func TestAbortedCheckpointsDoNotDisturbTheNext(t *testing.T) {
	inCluster(t, 2, nil, func(c *cluster) {
		c.catalog.size, c.catalog.perCount, c.catalog.limit = 1000, 5*time.Millisecond, 5000
		j := c.newOvertakingJob(2, 2)
		j.deploy(0, nil)
		c.heard(700 * time.Millisecond)
		for id := weir.CheckpointID(1); id < 20; id += 2 {
			o := overtaking
			if id%4 == 1 {
				o = mayTimeOut
			}
			j.triggerWith(id, o)
			c.heard(time.Duration(id) * time.Millisecond / 3)
			for v := range 2 {
				for i := range 2 {
					j.workerOf(i).say(rpc.NotifyCheckpointAborted{Attempt: j.attempt(v, i), Checkpoint: id})
				}
			}
			c.heard(time.Duration(id) * time.Millisecond)
			j.triggerWith(id+1, overtaking)
			c.acksOf(id+1, 4, 30*time.Millisecond)
		}
		j.triggerWith(21, overtaking)
		acks := c.acksOf(21, 4, 30*time.Millisecond)
		checkInFlight(c, acks, 1000)
		c.finishFrom(j, acks, 21)
	})
}

// finishFrom cancels a job, starts it again from a checkpoint, and checks what was counted.
func (c *cluster) finishFrom(j *job, acks []rpc.AcknowledgeCheckpoint, id weir.CheckpointID) {
	c.t.Helper()
	j.cancel()
	c.heard(time.Second)
	c.catalog.counts, c.catalog.sums, c.catalog.perCount = map[uint64]uint64{}, 0, 0
	j2 := c.newOvertakingJob(2, 2)
	j2.n = j.n + 1
	j2.restore(id, j, acks)
	c.heard(time.Minute)
	if n := uint64(c.catalog.limit); c.catalog.sums != n*(n-1) {
		c.t.Errorf("numbers counted add up to %d, want %d", c.catalog.sums, n*(n-1))
	}
}

// TestCapturedDataBeyondTheBoundFailsTheCheckpoint and not the task.
func TestCapturedDataBeyondTheBoundFailsTheCheckpoint(t *testing.T) {
	inCluster(t, 2, nil, func(c *cluster) {
		c.catalog.size, c.catalog.perCount, c.catalog.limit = 1000, 5*time.Millisecond, 2000
		j := c.newJob(2, 2)
		j.edit = func(d *rpc.TaskDeployment) { d.Options.Unaligned, d.Options.ChannelStateMemory = true, 10_000 }
		j.deploy(0, nil)
		c.heard(700 * time.Millisecond)
		j.triggerWith(1, overtaking)
		all := c.heard(100 * time.Millisecond)
		declines := map[weir.SubtaskID]int{}
		for _, m := range of[rpc.DeclineCheckpoint](all) {
			declines[m.Attempt.SubtaskID()]++
		}
		if len(declines) == 0 || len(of[rpc.TaskStateChanged](all)) > 0 {
			t.Errorf("declined by %v; %v", declines, of[rpc.TaskStateChanged](all))
		}
		for id, n := range declines {
			if n != 1 {
				t.Errorf("%v declined %d times", id, n)
			}
		}
		j.trigger(2) // one that aligns needs no room
		c.acksOf(2, 4, time.Minute)
		j.cancel()
		c.heard(time.Second)
	})
}

func TestRecoveredDataThatIsCutNamesItsChannel(t *testing.T) {
	inCluster(t, 2, nil, func(c *cluster) {
		c.catalog.size, c.catalog.perCount, c.catalog.limit = 70_000, 5*time.Millisecond, 2000
		j := c.newOvertakingJob(2, 2)
		j.deploy(0, nil)
		c.heard(700 * time.Millisecond)
		j.triggerWith(1, overtaking)
		acks := c.acksOf(1, 4, 20*time.Millisecond)
		j.cancel()
		c.heard(time.Second)
		for i := range acks {
			ch := &acks[i].State.Channels
			*ch = slices.DeleteFunc(*ch, func(h weir.ChannelStateHandle) bool { return h.Side == weir.ConsumerSide })
		}
		j.n++
		j.restore(1, j, acks)
		var failures []string
		for _, m := range of[rpc.TaskStateChanged](c.heard(time.Second)) {
			if m.Failure != nil {
				failures = append(failures, m.Failure.Message)
			}
		}
		if !slices.ContainsFunc(failures, func(s string) bool {
			return strings.Contains(s, "recover what was in flight from numbers[") && strings.Contains(s, "to count[")
		}) {
			t.Errorf("failures %q", failures)
		}
		j.cancel()
		c.heard(time.Second)
	})
}

// TestRecoveryStopsWhenTold: a task that recovers is slow, back-pressured or not, and can
// be cancelled; a checkpoint is declined until it runs.
func TestRecoveryStopsWhenTold(t *testing.T) {
	inCluster(t, 2, nil, func(c *cluster) {
		c.catalog.size, c.catalog.perCount, c.catalog.limit = 1000, 50*time.Millisecond, 2000
		j := c.newOvertakingJob(2, 2)
		j.deploy(0, nil)
		c.heard(2 * time.Second)
		j.triggerWith(1, overtaking)
		acks := c.acksOf(1, 4, 200*time.Millisecond)
		j.cancel()
		c.heard(time.Second)
		j.n++
		j.restore(1, j, acks)
		all := c.heard(time.Second)
		c.expectStates(j.attempt(1, 0), all, rpc.TaskInitializing)
		c.expectStates(j.attempt(0, 0), all, rpc.TaskInitializing, rpc.TaskRunning)
		j.workerOf(0).say(rpc.TriggerCheckpoint{Attempt: j.attempt(1, 0), Barrier: weir.Barrier{ID: 2}})
		if d := of[rpc.DeclineCheckpoint](c.heard(10 * time.Millisecond)); len(d) != 1 || d[0].Reason != weir.CheckpointDeclinedTaskNotReady {
			t.Errorf("declined %+v", d)
		}
		j.cancel()
		c.expectStates(j.attempt(1, 0), c.heard(200*time.Millisecond), rpc.TaskCanceling, rpc.TaskCanceled)
	})
}

// TestDueTimersHoldUpNothing is B07: 200,000 timers that are due when the task starts, of
// 100 µs each, hold up neither a barrier behind records nor a cancel.
func TestDueTimersHoldUpNothing(t *testing.T) {
	for name, o := range map[string]weir.CheckpointOptions{"aligned": {}, "unaligned": overtaking} {
		t.Run(name, func(t *testing.T) {
			registry := metrics.New(metrics.Build{})
			inCluster(t, 1, func(o *taskmanager.Options) { o.Metrics = registry }, func(c *cluster) {
				c.catalog.dueTimers, c.catalog.perTimer = 200_000, 100*time.Microsecond
				c.catalog.interval, c.catalog.limit = 10*time.Millisecond, 1<<30
				j := c.newOvertakingJob(1, 1)
				j.deploy(0, nil)
				c.heard(time.Second)
				j.triggerWith(1, o)
				c.acksOf(1, 2, 50*time.Millisecond)
				shown := httptest.NewRecorder()
				registry.Handler().ServeHTTP(shown, httptest.NewRequest("GET", "/metrics", nil))
				if !regexp.MustCompile(`weir_task_timers_late_seconds\{[^}]*vertex="count"\} 1\.`).MatchString(shown.Body.String()) {
					t.Error("the metrics do not show how late the timers are")
				}
				c.catalog.mu.Lock()
				fired := len(c.catalog.fired)
				c.catalog.mu.Unlock()
				if fired < 5000 || fired > 50_000 {
					t.Errorf("%d timers had fired", fired)
				}
				j.cancel()
				c.expectStates(j.attempt(1, 0), c.heard(10*time.Millisecond), rpc.TaskCanceling, rpc.TaskCanceled)
			})
		})
	}
}

// TestDebloatingShrinksWhatIsInFlight: with debloating the queue before a slow consumer
// takes about the wanted time to drain. What is queued follows from the rule (behaviour
// §22) and from who is slow:
//
//   - The 16 keys are not halved by their hashes: one consumer has more of them and works
//     all the time, at one record each 5 ms. Both sources wait for it, so that the other
//     has less than it could take, and next to nothing queued.
//   - A record is an element of 1,011 bytes (two of length, one of kind, eight of hash, 1,000
//     of payload), so that the throughput is 202,200 bytes a second, and with a target of
//     400 ms the wanted total 80,880 bytes.
//   - The size of segments tends to that total over the number of segments in flight: here
//     19, the pools of the gate and of the outputs, so to 4,257 bytes. All 19 are full.
//   - The size comes down from 32,704, and is announced when it is 25 % off the last one. So
//     the last announcement is between the wanted size and 1/(1 - 25 %) of it, and what is
//     queued between the wanted total and 107,840 bytes: 5,304 bytes were announced, and
//     100,089 are queued, 99 whole records of 19 × 5,304 bytes.
//
// The moment of the trigger makes it a segment more or less: the one being filled at the
// producer, and the one being read.
func TestDebloatingShrinksWhatIsInFlight(t *testing.T) {
	const (
		record    = 1011 // bytes of an element
		triggers  = 4
		threshold = 25 // percent
		target    = 400 * time.Millisecond
	)
	// The most and the least that the slow consumer had queued, and the most of the other.
	queued := func(debloat rpc.DebloatOptions) (least, most, other int64) {
		inCluster(t, 2, nil, func(c *cluster) {
			c.catalog.size, c.catalog.perCount, c.catalog.limit = 1000, 5*time.Millisecond, 1<<30
			j := c.newJob(2, 2)
			j.edit = func(d *rpc.TaskDeployment) { d.Options.Debloat = debloat }
			j.deploy(0, nil)
			c.heard(time.Minute)
			for id := range weir.CheckpointID(triggers) {
				j.trigger(id + 1)
				var of [2]int64
				for _, a := range c.acksOf(id+1, 4, time.Minute) {
					if a.Attempt.Vertex == 1 {
						of[a.Attempt.Subtask] = a.Metrics.QueuedBytes
					}
				}
				slow := max(of[0], of[1])
				if most = max(most, slow); least == 0 || slow < least {
					least = slow
				}
				other = max(other, min(of[0], of[1]))
				c.heard(3 * time.Second)
			}
			j.cancel()
			c.heard(time.Second)
		})
		return least, most, other
	}
	least, most, other := queued(rpc.DebloatOptions{Enabled: true, Period: 200 * time.Millisecond, Target: target, Samples: 20, Threshold: threshold})
	const (
		wanted  = 200 * record * int64(target) / int64(time.Second)
		highest = wanted * 100 / (100 - threshold)
		segment = 5676 // highest over 19 segments
	)
	if least < wanted-segment || most > highest+segment {
		t.Errorf("%d to %d bytes were queued, want %d to %d, and a segment of %d less or more", least, most, wanted, highest, segment)
	}
	if other > 10*record {
		t.Errorf("%d bytes were queued before the consumer that has less to do", other)
	}
	// Without, the same segments are full of 32,704 bytes, 7.7 times what is wanted; half of
	// them are enough to tell.
	if without, _, _ := queued(rpc.DebloatOptions{}); without < 19*32704/2 {
		t.Errorf("%d bytes were queued without debloating", without)
	}
}

// TestAtLeastOnceBlocksNothing: a slow channel holds the checkpoint up, not the
// records of the others.
func TestAtLeastOnceBlocksNothing(t *testing.T) {
	inCluster(t, 2, nil, func(c *cluster) {
		c.catalog.interval, c.catalog.limit = time.Millisecond, 1<<30
		j := c.newJob(2, 1)
		j.edit = func(d *rpc.TaskDeployment) { d.Options.AtLeastOnce = true }
		j.deploy(0, nil)
		c.heard(300 * time.Millisecond)
		b := weir.Barrier{ID: 1, Options: weir.CheckpointOptions{Location: "chk-1", Alignment: weir.AtLeastOnce}}
		j.workerOf(0).say(rpc.TriggerCheckpoint{Attempt: j.attempt(0, 0), Barrier: b})
		c.heard(time.Second)
		j.workerOf(1).say(rpc.TriggerCheckpoint{Attempt: j.attempt(0, 1), Barrier: b})
		acks := of[rpc.AcknowledgeCheckpoint](c.heard(300 * time.Millisecond))
		acks = slices.DeleteFunc(acks, func(a rpc.AcknowledgeCheckpoint) bool { return a.Attempt.Vertex == 0 })
		if len(acks) != 1 {
			t.Fatalf("%d acknowledgements", len(acks))
		}
		// About 300 of the first source came before its barrier, and 1,300 of the other.
		if n := c.counted(acks); n < 2500 {
			t.Errorf("%d were counted: records behind the first barrier waited", n)
		}
		j.cancel()
		c.heard(time.Second)
	})
}

// TestBackPressureIsSeen: a source that asks before each record waits
// softly, and its pool is full; the consumer is busy.
func TestBackPressureIsSeen(t *testing.T) {
	inCluster(t, 1, nil, func(c *cluster) {
		c.catalog.size, c.catalog.perCount, c.catalog.limit = 1000, 5*time.Millisecond, 1<<30
		j := c.newJob(1, 1)
		j.deploy(0, nil)
		c.heard(20 * time.Second)
		w := c.workers[0]
		w.mu.Lock()
		tasks := w.beats[len(w.beats)-1].Tasks
		w.mu.Unlock()
		source, sink := tasks[0], tasks[1]
		if source.SoftBackPressured < 0.9 || source.HardBackPressured > 0.05 || source.OutPoolUsage < 0.8 {
			t.Errorf("source: %+v", source)
		}
		if sink.BusyRatio < 0.9 || sink.BackPressured > 0.05 || sink.InPoolUsage < 0.5 {
			t.Errorf("consumer: %+v", sink)
		}
		j.cancel()
		c.heard(time.Second)
	})
}

func TestUnalignedTriggerOfAJobWithoutIsDeclined(t *testing.T) {
	inCluster(t, 1, nil, func(c *cluster) {
		c.catalog.interval, c.catalog.limit = time.Millisecond, 1<<30
		j := c.newJob(1, 1)
		j.deploy(0, nil)
		c.heard(100 * time.Millisecond)
		j.triggerWith(1, overtaking)
		all := c.heard(100 * time.Millisecond)
		if d := of[rpc.DeclineCheckpoint](all); len(d) != 1 || d[0].Reason != weir.CheckpointDeclined {
			t.Errorf("declined %+v", d)
		}
		j.trigger(2)
		c.acksOf(2, 2, time.Second)
		j.cancel()
		c.heard(time.Second)
	})
}

// TestForcedAlignment: over an edge that aligns nothing is captured, and the checkpoint
// waits for what is queued.
func TestForcedAlignment(t *testing.T) {
	t.Run("O-FRC-01_at_the_consumer", func(t *testing.T) {
		inCluster(t, 2, nil, func(c *cluster) {
			c.catalog.size, c.catalog.perCount, c.catalog.limit = 1000, 5*time.Millisecond, 2000
			j := c.newJob(2, 2)
			j.edit = func(d *rpc.TaskDeployment) {
				d.Options.Unaligned = true
				for i := range d.Outputs {
					d.Outputs[i].Aligns = true
				}
			}
			j.deploy(0, nil)
			c.heard(700 * time.Millisecond)
			begun := time.Now()
			j.triggerWith(1, overtaking)
			acks := c.acksOf(1, 4, time.Minute)
			if took := time.Since(begun); took < 300*time.Millisecond {
				t.Errorf("took %v: it did not wait", took)
			}
			for _, a := range acks {
				if len(a.State.Channels) > 0 || a.Metrics.PersistedBytes > 0 || a.Metrics.Unaligned != (a.Attempt.Vertex == 0) {
					t.Errorf("%v: %+v", a.Attempt, a.Metrics)
				}
			}
			if emitted, counted := c.positions(acks), c.counted(acks); emitted != counted {
				t.Errorf("%d were emitted, %d counted", emitted, counted)
			}
			c.finishFrom(j, acks, 1)
		})
	})
}
