package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"time"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/bench/pairs"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/netstack"
	"github.com/weirflow/weir/netstack/gate"
	"github.com/weirflow/weir/netstack/link/grpclink"
	"github.com/weirflow/weir/netstack/partition"
	"github.com/weirflow/weir/netstack/wire"
)

// The receiver has the smaller id, so that it dials.
var (
	receiverID = weir.TaskManagerID{1}
	senderID   = weir.TaskManagerID{2}
)

func attempt(vertex, subtask int) weir.AttemptID {
	return weir.AttemptID{Job: weir.JobID{1}, Vertex: int32(vertex), Subtask: int32(subtask), Epoch: 1, N: 1}
}

// blocked is a task of the job whose consumer takes nothing.
func blocked(vertex int) weir.AttemptID {
	a := attempt(vertex, 0)
	a.Job[0]++
	return a
}

func newStack(id weir.TaskManagerID) *netstack.Stack {
	g := group.New(context.Background(), "transport")
	creds := insecure.NewCredentials()
	s, err := netstack.New(netstack.Options{
		TaskManager: id, Incarnation: 1, Listen: "127.0.0.1:0", Memory: 64 << 20,
		Transport: grpclink.New(g, grpclink.Options{Client: creds, Server: creds}),
	})
	must(err)
	must(s.Start(context.Background()))
	return s
}

// tasks returns how many channels there are: bulk ones, and one for small messages.
func tasks(work string, channels int) int {
	if work == "latency" {
		return 4 + 1
	}
	return channels
}

func buffers() netstack.BufferOptions {
	b := netstack.DefaultBuffers()
	b.Floating = 32
	b.PerOutput = 32
	return b
}

// stack is the receiving task: a gate with all channels.
type stack struct {
	work    string
	gate    *gate.InputGate
	wake    chan struct{}
	child   *child
	cutters []wire.Cutter
	counts  counter
	delays  []time.Duration
	// near is the segment at hand. One copy in sequence brings it to this core; record
	// by record, each would be waited for.
	near [segmentBytes]byte
}

func startStack(work string, channels int) receiver {
	s := newStack(receiverID)
	n := tasks(work, channels)
	c := startChild("-of", "stack", "-work", work, "-channels", fmt.Sprint(channels), "-peer", s.Address())
	var address string
	c.read(&address)
	st := &stack{work: work, wake: make(chan struct{}, 1), child: c, counts: counter{}, cutters: make([]wire.Cutter, n)}
	in := netstack.InputSpec{}
	for i := range n {
		st.cutters[i] = wire.Cutter{Keyed: work == "count", Reuse: true}
		in.Channels = append(in.Channels, netstack.ChannelSpec{Producer: attempt(0, i), At: netstack.Location{TaskManager: senderID, Incarnation: 1, Address: address}})
	}
	io, err := s.OpenTask(netstack.TaskSpec{Attempt: attempt(1, 0), Inputs: []netstack.InputSpec{in}, Buffers: buffers(), Wake: waker(st.wake)})
	must(err)
	must(io.Start())
	st.gate = io.Inputs[0]
	if work == "neighbour" {
		neglect(s, address)
	}
	return st
}

// neglect opens the consumer of another job, that polls nothing.
func neglect(s *netstack.Stack, address string) {
	io, err := s.OpenTask(netstack.TaskSpec{Attempt: blocked(1), Buffers: buffers(), Inputs: []netstack.InputSpec{{Channels: []netstack.ChannelSpec{
		{Producer: blocked(0), At: netstack.Location{TaskManager: senderID, Incarnation: 1, Address: address}}}}}})
	must(err)
	must(io.Start())
}

func waker(c chan struct{}) func() {
	return func() {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

func (s *stack) sender() *child { return s.child }

func (s *stack) sample(units int) pairs.Sample {
	sample := pairs.Wall(float64(units), func() {
		s.child.ask(units)
		for left := units; left > 0; {
			left -= s.receive()
		}
		s.child.answer()
	})
	if s.work == "latency" {
		slices.Sort(s.delays)
		sample.Units, sample.Cost = 1, s.delays[len(s.delays)/2]
		s.delays = s.delays[:0]
	}
	return sample
}

// receive takes what is there, or waits, and returns how many units came.
func (s *stack) receive() int {
	item, ok, err := s.gate.Poll()
	must(err)
	if !ok {
		<-s.wake
		return 0
	}
	defer item.Data.Release()
	small := s.work == "latency" && item.Channel == 4
	if s.work != "count" && !small {
		return units(item.Data.Len())
	}
	n := 0
	c := &s.cutters[item.Channel]
	c.Feed(s.near[:copy(s.near[:], item.Data.Bytes())], item.Data.Base())
	var e wire.Element
	for {
		ok, err := c.Next(&e)
		must(err)
		if !ok {
			break
		}
		if small {
			sent := int64(binary.LittleEndian.Uint64(e.Payload))
			s.delays = append(s.delays, time.Duration(time.Now().UnixNano()-sent))
			continue
		}
		s.counts.add(e.Payload)
		n++
	}
	return n
}

// units counts segments; a flush may cut one in two.
func units(n int) int {
	if n == segmentBytes {
		return 1
	}
	panic(fmt.Sprintf("a segment of %d bytes", n))
}

// sender is a sending task.
type sender struct {
	out  *partition.ResultPartition
	wake chan struct{}
}

func newSender(s *netstack.Stack, from, to weir.AttemptID, by partition.Partitioning, peer string) *sender {
	t := &sender{wake: make(chan struct{}, 1)}
	io, err := s.OpenTask(netstack.TaskSpec{Attempt: from, Buffers: buffers(), Wake: waker(t.wake), Outputs: []netstack.OutputSpec{{
		Partitioning: by, MaxParallelism: 128, Consumers: []netstack.Consumer{{Attempt: to,
			At: netstack.Location{TaskManager: receiverID, Incarnation: 1, Address: peer}}}}}})
	must(err)
	must(io.Start())
	t.out = io.Outputs[0]
	return t
}

// sendStack is the sending child.
func sendStack(work string, channels int, peer string) {
	s := newStack(senderID)
	fmt.Printf("%q\n", s.Address())
	by := partition.Forward
	if work == "count" {
		by = partition.Hash
	}
	var all []*sender
	for i := range tasks(work, channels) {
		all = append(all, newSender(s, attempt(0, i), attempt(1, 0), by, peer))
	}
	if work == "neighbour" {
		stuck := newSender(s, blocked(0), blocked(1), by, peer)
		go stuck.segments(1 << 30)
	}
	g := newGenerator()
	requests := bufio.NewReader(os.Stdin)
	for {
		var units int
		if _, err := fmt.Fscanln(requests, &units); err != nil {
			return
		}
		before := pairs.ProcessCPU()
		send(work, all, units, g)
		said(before)
	}
}

// send sends that many units, in equal parts over the bulk channels.
func send(work string, all []*sender, units int, g *generator) {
	if work == "count" {
		all[0].records(units, g)
		return
	}
	bulk := all
	stop := make(chan struct{})
	ended := make(chan struct{})
	if work == "latency" {
		bulk = all[:4]
		go func() { all[4].beats(stop); close(ended) }()
	}
	done := make(chan struct{})
	for i, s := range bulk {
		n := units / len(bulk)
		if i < units%len(bulk) {
			n++
		}
		go func() { s.segments(n); done <- struct{}{} }()
	}
	for range bulk {
		<-done
	}
	if work == "latency" {
		close(stop)
		<-ended
	}
}

// ready waits until the output is available, as a task does.
func (s *sender) ready() {
	for !s.out.Available() {
		<-s.wake
	}
}

// segments sends records that fill a segment each.
func (s *sender) segments(n int) {
	payload := make([]byte, segmentBytes-4)
	for range n {
		s.ready()
		s.out.Emit(0, wire.NoTimestamp, payload)
	}
	s.out.FlushAll()
}

func (s *sender) records(n int, g *generator) {
	for i := range n {
		if i%64 == 0 {
			s.ready()
			s.out.FlushIfRequested()
		}
		hash := g.next()
		s.out.Emit(hash, int64(g.n), g.record[:])
	}
	s.out.FlushAll()
}

// beats sends the time every millisecond.
func (s *sender) beats(stop <-chan struct{}) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	var now [8]byte
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		binary.LittleEndian.PutUint64(now[:], uint64(time.Now().UnixNano()))
		s.out.Emit(0, wire.NoTimestamp, now[:])
		s.out.FlushAll()
	}
}
