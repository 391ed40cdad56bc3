package netstack_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/netstack"
	"github.com/weirflow/weir/netstack/buffer"
	"github.com/weirflow/weir/netstack/gate"
	"github.com/weirflow/weir/netstack/netstacktest"
	"github.com/weirflow/weir/netstack/partition"
	"github.com/weirflow/weir/netstack/wire"
)

// forward is an exchange of one producer and one consumer.
func forward(net *netstacktest.Net, from, to int) *exchange {
	return &exchange{net: net, partitioning: partition.Forward, from: vertex{0, []int{from}}, to: vertex{1, []int{to}}, buffers: smallest}
}

func start(t testing.TB, nodes ...*node) {
	t.Helper()
	for _, n := range nodes {
		if err := n.Start(); err != nil {
			t.Fatal(err)
		}
	}
}

// lost polls until the gate fails, and returns why.
func lost(t testing.TB, n *node) *gate.PartitionLost {
	t.Helper()
	for {
		item, ok, err := n.Inputs[0].Poll()
		var l *gate.PartitionLost
		switch {
		case errors.As(err, &l):
			return l
		case err != nil:
			t.Fatal(err)
		case ok:
			item.Data.Release()
		default:
			<-n.wake
		}
	}
}

// wantLost checks that a consumer lost its producer, and why.
func wantLost(t testing.TB, n *node, producer weir.AttemptID, cause error) {
	t.Helper()
	l := lost(t, n)
	if l.Producer != producer || !errors.Is(l, cause) {
		t.Errorf("lost %v, want %v of %s", l, cause, producer)
	}
}

func TestAConnectionThatIsCutFailsItsChannelsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := netstacktest.New(t, 3, nil, nil)
		cut, local, other := forward(net, 0, 1), forward(net, 0, 0), forward(net, 0, 2)
		local.job, other.job = 1, 2
		c, p := cut.openConsumer(t, 0), cut.openProducer(t, 0)
		start(t, c, p)
		p.Outputs[0].Emit(0, 0, []byte("record"))
		p.Outputs[0].FlushAll()
		synctest.Wait()
		if got := net.Stacks[1].Stats().Connections; got != 1 {
			t.Fatalf("%d connections", got)
		}
		net.Memory.Cut("h0", "h1")
		wantLost(t, c, cut.producer(0), netstack.ErrConnectionLost)
		for range 1000 { // the producer goes on, and its records are dropped
			p.Outputs[0].Emit(0, 0, make([]byte, 1000))
		}
		for _, x := range []*exchange{local, other} {
			x.run(t, 100, 10, 20, nil)
		}
		c.Close()
		p.Close()
		if got := net.Stacks[0].Stats(); got.Connections != 1 || got.UsedBuffers != 0 {
			t.Errorf("%+v", got)
		}
		// After the cut heals, a new deployment connects again.
		net.Memory.Heal("h0", "h1")
		cut.attempt = 2
		cut.run(t, 100, 10, 20, nil)
	})
}

func TestConsumersWaitForTheirProducerButNotForEver(t *testing.T) {
	for _, to := range []int{0, 1} {
		t.Run(fmt.Sprintf("consumer on %d", to), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := netstacktest.New(t, 2, nil, nil)
				x := forward(net, 0, to)
				c := x.openConsumer(t, 0)
				p := x.openProducer(t, 0)
				begin := time.Now()
				start(t, c)
				if to == 1 { // somebody must make stack 0 dial
					other := forward(net, 0, 1)
					other.job = 9
					start(t, other.openProducer(t, 0))
				}
				wantLost(t, c, x.producer(0), netstack.ErrPartitionNotFound)
				if d := time.Since(begin); d != 20*time.Second {
					t.Errorf("after %s", d)
				}
				_ = p
			})
		})
	}
}

func TestNoConnectionFailsTheChannelsThatWaitForIt(t *testing.T) {
	for _, c := range []struct{ from, to int }{{0, 1}, {1, 0}} {
		t.Run(fmt.Sprintf("consumer on %d", c.to), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := netstacktest.New(t, 2, nil, nil)
				net.Memory.Cut("h0", "h1")
				x := forward(net, c.from, c.to)
				n := x.openConsumer(t, 0)
				begin := time.Now()
				start(t, n)
				wantLost(t, n, x.producer(0), netstack.ErrUnreachable)
				if d := time.Since(begin); d < 19*time.Second || d > 21*time.Second {
					t.Errorf("after %s", d)
				}
			})
		})
	}
}

func TestDiallingGoesOnUntilThePeerIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := netstacktest.New(t, 2, nil, nil)
		net.Memory.Cut("h0", "h1")
		x := forward(net, 0, 1)
		c, p := x.openConsumer(t, 0), x.openProducer(t, 0)
		start(t, c, p)
		time.Sleep(5 * time.Second)
		net.Memory.Heal("h0", "h1")
		time.Sleep(2 * time.Second)
		if got := net.Stacks[1].Stats().Connections; got != 1 {
			t.Errorf("%d connections", got)
		}
	})
}

// A TaskManager that was restarted is another process: nobody mistakes it for the old.
func TestAnotherIncarnationIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := netstacktest.New(t, 2, nil, nil)
		net.At[1].Incarnation++
		x := forward(net, 1, 0)
		c := x.openConsumer(t, 0)
		start(t, c)
		l := lost(t, c)
		if !errors.Is(l, netstack.ErrFenced) {
			t.Errorf("got %v", l)
		}
		net.At[0].Incarnation++
		local := forward(net, 0, 0)
		local.job = 1
		n := local.openConsumer(t, 0)
		start(t, n)
		wantLost(t, n, local.producer(0), netstack.ErrFenced)
	})
}

func TestOlderAttemptsAndLeadersAreFenced(t *testing.T) {
	for _, to := range []int{0, 1} {
		t.Run(fmt.Sprintf("consumer on %d", to), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := netstacktest.New(t, 2, nil, nil)
				old, now := forward(net, 0, to), forward(net, 0, to)
				old.attempt, now.attempt = 1, 2
				p := now.openProducer(t, 0)
				start(t, p)
				// The consumer of attempt 1 asks for the producer of attempt 1.
				c1 := old.openConsumer(t, 0)
				start(t, c1)
				wantLost(t, c1, old.producer(0), netstack.ErrFenced)
				// A consumer that is not the one of the deployment asks for attempt 2.
				wrong := now.consumer(0)
				wrong.N = 7
				c2 := openAs(t, now, to, wrong)
				start(t, c2)
				wantLost(t, c2, now.producer(0), netstack.ErrFenced)
				c2.Close()
				// A newer leader has deployed a task of the job here.
				later := netstacktest.Attempt(0, 5, 0, 1)
				later.Epoch = 2
				io, err := net.Stacks[0].OpenTask(netstack.TaskSpec{Attempt: later, Buffers: smallest})
				if err != nil {
					t.Fatal(err)
				}
				defer io.Close()
				c3 := now.openConsumer(t, 0)
				start(t, c3)
				wantLost(t, c3, now.producer(0), netstack.ErrFenced)
			})
		})
	}
}

// openAs opens the consumer of an exchange under another attempt.
func openAs(t testing.TB, x *exchange, on int, a weir.AttemptID) *node {
	t.Helper()
	return x.open(t, on, netstack.TaskSpec{Attempt: a, Inputs: []netstack.InputSpec{{Edge: 7, Channels: []netstack.ChannelSpec{
		{Producer: x.producer(0), At: x.net.At[x.from.on[0]]}}}}})
}

// A request of an old consumer that waits for its producer is refused when the
// producer's next attempt comes.
func TestAParkedRequestIsRefusedByANewerAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := netstacktest.New(t, 2, nil, nil)
		old, now := forward(net, 0, 0), forward(net, 0, 0)
		old.attempt, now.attempt = 1, 2
		c := old.openConsumer(t, 0)
		start(t, c)
		start(t, now.openProducer(t, 0))
		begin := time.Now()
		wantLost(t, c, old.producer(0), netstack.ErrFenced)
		if time.Since(begin) > time.Second {
			t.Error("it waited for the timeout")
		}
	})
}

func TestAFailedProducerIsItsConsumersCause(t *testing.T) {
	for _, to := range []int{0, 1} {
		t.Run(fmt.Sprintf("consumer on %d", to), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := netstacktest.New(t, 2, nil, nil)
				x := forward(net, 0, to)
				c, p := x.openConsumer(t, 0), x.openProducer(t, 0)
				start(t, c, p)
				g := group.New(context.Background(), "producer")
				g.Go("producer", func(context.Context) error {
					for !stopped(p) { // waits for buffers, since nobody reads
						p.Outputs[0].Emit(0, 0, make([]byte, 1000))
					}
					return nil
				})
				synctest.Wait()
				p.Cancel(errPlanned)
				if err := g.Wait(); err != nil {
					t.Fatal(err)
				}
				l := lost(t, c)
				if l.Producer != x.producer(0) || !strings.Contains(l.Error(), "planned") {
					t.Errorf("got %v", l)
				}
				if to == 1 && !errors.Is(l, netstack.ErrProducerFailed) {
					t.Errorf("got %v", l)
				}
			})
		})
	}
}

// A task that has ended leaves its output to its consumers.
func TestOutputsOutliveTheirTask(t *testing.T) {
	for _, to := range []int{0, 1} {
		t.Run(fmt.Sprintf("consumer on %d", to), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := netstacktest.New(t, 2, nil, nil)
				x := forward(net, 0, to)
				p := x.openProducer(t, 0)
				start(t, p)
				produce(p, 0, 50, 100, 0)
				if err := p.Close(); err != nil {
					t.Fatal(err)
				}
				c := x.openConsumer(t, 0)
				start(t, c)
				cons := newConsumer(c, false)
				if err := cons.run(context.Background()); err != nil || cons.seen.records[0] != 50 {
					t.Errorf("%d records, %v", cons.seen.records[0], err)
				}
				c.Close()
				synctest.Wait()
				if s := net.Stacks[0].Stats(); s.UsedBuffers != 0 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

func TestReleaseJobDropsWhatFinishedTasksLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := netstacktest.New(t, 1, nil, nil)
		x := forward(net, 0, 0)
		p := x.openProducer(t, 0)
		start(t, p)
		produce(p, 0, 50, 100, 0)
		p.Close()
		if s := net.Stacks[0].Stats(); s.UsedBuffers == 0 {
			t.Error("nothing is left to release")
		}
		net.Stacks[0].ReleaseJob(weir.JobID{99})
		if s := net.Stacks[0].Stats(); s.UsedBuffers == 0 {
			t.Error("another job's output was released")
		}
		net.Stacks[0].ReleaseJob(weir.JobID{})
		if s := net.Stacks[0].Stats(); s.UsedBuffers != 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestOutputThatNobodyComesForIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := netstacktest.New(t, 2, nil, nil)
		x := &exchange{net: net, partitioning: partition.Rebalance, from: vertex{0, []int{0}}, to: vertex{1, []int{0, 0, 1}}, buffers: smallest}
		p := x.openProducer(t, 0)
		start(t, p)
		produce(p, 0, 60, 100, 0)
		p.Close()
		c := x.openConsumer(t, 0)
		start(t, c)
		before := net.Stacks[0].Stats().UsedBuffers
		time.Sleep(21 * time.Second)
		if after := net.Stacks[0].Stats().UsedBuffers; before != 3 || after != 1 {
			t.Errorf("%d buffers in use, before %d: one has a reader", after, before)
		}
		if err := newConsumer(c, false).run(context.Background()); err != nil {
			t.Error(err)
		}
		if after := net.Stacks[0].Stats().UsedBuffers; after != 0 {
			t.Errorf("%d buffers in use", after)
		}
	})
}

// What an attempt left is dropped when the next attempt of the subtask starts.
func TestANewAttemptReleasesWhatTheLastOneLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := netstacktest.New(t, 1, nil, nil)
		x := forward(net, 0, 0)
		p := x.openProducer(t, 0)
		start(t, p)
		produce(p, 0, 50, 100, 0)
		p.Close()
		x.attempt = 2
		x.run(t, 50, 100, 10, nil)
	})
}

func TestOpenTaskRefusesWhatItCannotGive(t *testing.T) {
	t.Parallel()
	net := netstacktest.New(t, 1, nil, func(_ int, o *netstack.Options) { o.Memory = 10 << 15 })
	s := net.Stacks[0]
	x := &exchange{net: net, partitioning: partition.Hash, from: vertex{0, []int{0}}, to: vertex{1, []int{0, 0, 0, 0}}, buffers: smallest}
	a := x.openProducer(t, 0) // five buffers
	spec := netstack.TaskSpec{Attempt: netstacktest.Attempt(3, 0, 0, 1), Buffers: smallest}
	for i := range 6 {
		spec.Outputs = append(spec.Outputs, netstack.OutputSpec{Edge: i, Consumers: []netstack.Consumer{{}}})
	}
	if _, err := s.OpenTask(spec); !errors.Is(err, buffer.ErrInsufficientBuffers) || !strings.Contains(err.Error(), "want 2, have 1 of 10") {
		t.Errorf("got %v", err)
	}
	// What the refused task had is back.
	spec.Outputs = spec.Outputs[:2]
	io, err := s.OpenTask(spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.OpenTask(spec); !errors.Is(err, netstack.ErrTaskExists) {
		t.Errorf("got %v", err)
	}
	io.Close()
	a.Close()
	if err := io.Start(); !errors.Is(err, netstack.ErrClosed) {
		t.Errorf("got %v", err)
	}
	bad := spec
	bad.Buffers.Exclusive = -1
	bad.Outputs = []netstack.OutputSpec{{Partitioning: partition.Hash, Consumers: make([]netstack.Consumer, 2), MaxParallelism: 1}, {}}
	bad.Inputs = []netstack.InputSpec{{}}
	if _, err := s.OpenTask(bad); !errors.Is(err, netstack.ErrBadSpec) || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("got %v", err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	good := netstack.Options{TaskManager: weir.TaskManagerID{1}, Transport: netstacktest.New(t, 1, nil, nil).Memory.Host("x"), Memory: 1 << 20}
	if _, err := netstack.New(good); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(o *netstack.Options){
		"id":        func(o *netstack.Options) { o.TaskManager = weir.TaskManagerID{} },
		"cluster":   func(o *netstack.Options) { o.Cluster = strings.Repeat("x", 257) },
		"transport": func(o *netstack.Options) { o.Transport = nil },
		"memory":    func(o *netstack.Options) { o.Memory = 100 },
		"timeout":   func(o *netstack.Options) { o.ConnectTimeout = -1 },
	} {
		o := good
		change(&o)
		if _, err := netstack.New(o); !errors.Is(err, netstack.ErrBadOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFlushIsRequestedEveryBufferTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := netstacktest.New(t, 1, nil, nil)
		x := forward(net, 0, 0)
		x.buffers.Timeout = 50 * time.Millisecond
		c, p := x.openConsumer(t, 0), x.openProducer(t, 0)
		start(t, c, p)
		out := p.Outputs[0]
		published := 0
		for range 100 {
			out.Emit(0, 0, []byte("r"))
			out.FlushIfRequested()
			if out.QueuedBytes() > 0 {
				published++
				if item, ok, err := c.Inputs[0].Poll(); !ok || err != nil {
					t.Fatal(ok, err)
				} else {
					item.Data.Release()
				}
			}
			time.Sleep(10*time.Millisecond + time.Microsecond)
		}
		if published < 18 || published > 21 {
			t.Errorf("published %d times in a second", published)
		}
	})
}

func TestABarriersAgeIsItsTimeInQueues(t *testing.T) {
	for _, to := range []int{0, 1} {
		t.Run(fmt.Sprintf("consumer on %d", to), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := netstacktest.New(t, 2, nil, nil)
				x := forward(net, 0, to)
				c, p := x.openConsumer(t, 0), x.openProducer(t, 0)
				start(t, p)
				b := wire.Barrier{ID: 1, Age: time.Second}
				p.Outputs[0].BroadcastEvent(partition.NewEvent(wire.TypeBlockingEvent, b))
				time.Sleep(2 * time.Second) // in the producer's queue
				start(t, c)
				synctest.Wait()
				time.Sleep(3 * time.Second) // in the consumer's, if that is elsewhere
				item, ok, err := c.Inputs[0].Poll()
				if !ok || err != nil {
					t.Fatal(ok, err)
				}
				e, err := wire.DecodeEvent(wire.AddAge(item.Event, item.Spent))
				if got := e.(wire.Barrier).Age; err != nil || got != 6*time.Second {
					t.Errorf("age %s, %v", got, err)
				}
			})
		})
	}
}
