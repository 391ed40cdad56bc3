package netstack_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/netstack"
	"github.com/weirflow/weir/netstack/buffer"
	"github.com/weirflow/weir/netstack/link"
	"github.com/weirflow/weir/netstack/netstacktest"
	"github.com/weirflow/weir/netstack/partition"
	"github.com/weirflow/weir/netstack/wire"
)

// raw is a peer that says what the test wants. Its id is {0, 1}, so that it dials.
type raw struct {
	link.Conn
	t testing.TB
}

var rawID = weir.TaskManagerID{0, 1}

const rawIncarnation = 77

func dialRaw(t testing.TB, net *netstacktest.Net, to int) *raw {
	t.Helper()
	c, err := net.Memory.Host("raw").Dial(t.Context(), net.At[to].Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &raw{c, t}
}

func (r *raw) send(b []byte) {
	r.t.Helper()
	if err := r.Send(b, buffer.View{}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *raw) data(h wire.Buffer, payload []byte) {
	r.t.Helper()
	h.Payload = len(payload)
	r.send(append(h.AppendHead(nil), payload...))
}

// recv returns the next control frame.
func (r *raw) recv() (wire.Frame, error) {
	m, err := r.Recv()
	if err != nil {
		return nil, err
	}
	b := make([]byte, m.Len())
	m.CopyFrom(0, b)
	return wire.DecodeControl(b)
}

func helloTo(net *netstacktest.Net, to int) wire.Hello {
	return wire.Hello{Cluster: "test", TaskManager: rawID, Incarnation: rawIncarnation, Peer: net.At[to].TaskManager, PeerIncarnation: net.At[to].Incarnation}
}

// hello says Hello and gets the answer.
func (r *raw) hello(net *netstacktest.Net, to int) {
	r.t.Helper()
	r.send(helloTo(net, to).Append(nil))
	f, err := r.recv()
	if h, ok := f.(wire.Hello); !ok || err != nil || h.TaskManager != net.At[to].TaskManager || h.Peer != rawID {
		r.t.Fatalf("got %+v, %v", f, err)
	}
}

func TestHellosThatDoNotFitAreRefusedWithAReason(t *testing.T) {
	for name, c := range map[string]struct {
		change func(h *wire.Hello)
		code   wire.FailureCode
		says   string
	}{
		"cluster":     {func(h *wire.Hello) { h.Cluster = "prod" }, wire.CodeProtocol, `cluster "prod", this is "test"`},
		"peer":        {func(h *wire.Hello) { h.Peer[5] = 1 }, wire.CodeFenced, "not"},
		"incarnation": {func(h *wire.Hello) { h.PeerIncarnation++ }, wire.CodeFenced, "not"},
		"who dials":   {func(h *wire.Hello) { h.TaskManager = weir.TaskManagerID{9} }, wire.CodeProtocol, "not to dial"},
		"oneself":     {func(h *wire.Hello) { h.TaskManager = weir.TaskManagerID{1} }, wire.CodeProtocol, "not to dial"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := netstacktest.New(t, 1, nil, nil)
				r := dialRaw(t, net, 0)
				h := helloTo(net, 0)
				c.change(&h)
				r.send(h.Append(nil))
				f, err := r.recv()
				if got, ok := f.(wire.Failure); !ok || got.Channel != 0 || got.Code != c.code || !strings.Contains(got.Message, c.says) {
					t.Errorf("got %+v, %v", f, err)
				}
				if _, err := r.recv(); !errors.Is(err, link.ErrClosed) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

func TestOtherProtocolsAreRefused(t *testing.T) {
	for name, b := range map[string][]byte{
		"another version": append([]byte{10, 8, 10, 4}, "weir\x10\x02"...),
		"random bytes":    []byte("GET / HTTP/1.1\r\n\r\n"),
		"a frame too big": make([]byte, link.MaxFrame),
		"empty":           {},
		"no hello":        wire.Resume{Channel: 1}.Append(nil),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := netstacktest.New(t, 1, nil, nil)
				r := dialRaw(t, net, 0)
				r.send(b)
				f, err := r.recv()
				got, ok := f.(wire.Failure)
				if !ok || err != nil {
					t.Fatalf("got %+v, %v", f, err)
				}
				if version := got.Code == wire.CodeVersion; version != (name == "another version") {
					t.Errorf("got %+v", got)
				}
			})
		})
	}
}

func TestWhoSaysNothingIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := netstacktest.New(t, 1, nil, nil)
		r := dialRaw(t, net, 0)
		begin := time.Now()
		if f, err := r.recv(); err == nil {
			t.Errorf("got %+v", f)
		}
		if d := time.Since(begin); d != 10*time.Second {
			t.Errorf("dropped after %s", d)
		}
	})
}

func TestASecondStreamOfAProcessReplacesTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := netstacktest.New(t, 1, nil, nil)
		first, second := dialRaw(t, net, 0), dialRaw(t, net, 0)
		first.hello(net, 0)
		c := rawConsumer(t, net)
		start(t, c)
		if f, err := first.recv(); err != nil {
			t.Fatal(f, err)
		}
		second.hello(net, 0)
		if _, err := first.recv(); !errors.Is(err, link.ErrClosed) {
			t.Errorf("first: %v", err)
		}
		wantLost(t, c, rawProducer, netstack.ErrReplaced)
		if got := net.Stacks[0].Stats().Connections; got != 1 {
			t.Errorf("%d connections", got)
		}
	})
}

var rawProducer = netstacktest.Attempt(4, 0, 0, 1)

// rawConsumer is a task that reads from the raw peer.
func rawConsumer(t testing.TB, net *netstacktest.Net) *node {
	t.Helper()
	x := forward(net, 0, 0)
	return x.open(t, 0, netstack.TaskSpec{Attempt: netstacktest.Attempt(4, 1, 0, 1), Inputs: []netstack.InputSpec{{Edge: 3, Channels: []netstack.ChannelSpec{
		{Producer: rawProducer, Subpartition: 2, At: netstack.Location{TaskManager: rawID, Incarnation: rawIncarnation}}}}}})
}

// What a producer must not send fails its channel, and nothing else.
func TestChannelFaultsFailTheChannel(t *testing.T) {
	for name, c := range map[string]struct {
		send func(r *raw, channel uint32)
		says string
	}{
		"sequence": {func(r *raw, ch uint32) {
			r.data(wire.Buffer{Channel: ch, Sequence: 1, Type: wire.TypeData}, []byte("x"))
		}, "message 1 instead of 0"},
		"credit": {func(r *raw, ch uint32) {
			for i := range 3 {
				r.data(wire.Buffer{Channel: ch, Sequence: uint32(i), Type: wire.TypeData}, []byte("x"))
			}
		}, "without credit"},
		"after a blocking event": {func(r *raw, ch uint32) {
			r.data(wire.Buffer{Channel: ch, Type: wire.TypeBlockingEvent}, []byte("x"))
			r.data(wire.Buffer{Channel: ch, Sequence: 1, Type: wire.TypeData}, []byte("x"))
		}, "while stopped"},
		"checksum": {func(r *raw, ch uint32) {
			r.data(wire.Buffer{Channel: ch, Type: wire.TypeData, Checksum: 1}, []byte("x"))
		}, "checksum"},
		"failure": {func(r *raw, ch uint32) {
			r.send(wire.Failure{Channel: ch, Code: wire.CodeProducerFailed, Message: "out of luck"}.Append(nil))
		}, "out of luck"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := netstacktest.New(t, 1, nil, nil)
				r := dialRaw(t, net, 0)
				h := helloTo(net, 0)
				h.Checksums = name == "checksum"
				r.send(h.Append(nil))
				if _, err := r.recv(); err != nil {
					t.Fatal(err)
				}
				n := rawConsumer(t, net)
				start(t, n)
				f, err := r.recv()
				open, ok := f.(wire.OpenChannel)
				if !ok || open.Producer != rawProducer || open.Output != 3 || open.Subpartition != 2 || open.Credit != 1 {
					t.Fatalf("got %+v, %v", f, err)
				}
				c.send(r, open.Channel)
				l := lost(t, n)
				if l.Producer != rawProducer || !strings.Contains(l.Error(), c.says) {
					t.Errorf("got %v", l)
				}
				if got := net.Stacks[0].Stats().Connections; got != 1 {
					t.Errorf("%d connections", got)
				}
			})
		})
	}
}

// What is no sense at all ends the connection.
func TestConnectionFaultsEndTheConnection(t *testing.T) {
	for name, b := range map[string][]byte{
		"unknown channel":  append(wire.Buffer{Channel: 9, Type: wire.TypeData, Payload: 1}.AppendHead(nil), 1),
		"second hello":     wire.Hello{Cluster: "test"}.Append(nil),
		"random bytes":     []byte("\x1a\xff\xff\xff\xff\xff"),
		"failure of all":   wire.Failure{Code: wire.CodeProtocol, Message: "no"}.Append(nil),
		"channel 0":        wire.OpenChannel{}.Append(nil),
		"oversize payload": append(wire.Buffer{Channel: 1, Payload: wire.MaxPayload + 1}.AppendHead(nil), make([]byte, wire.MaxPayload+1)...),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := netstacktest.New(t, 1, nil, nil)
				r := dialRaw(t, net, 0)
				r.hello(net, 0)
				r.send(b)
				if f, err := r.recv(); err == nil {
					t.Errorf("got %+v", f)
				}
				synctest.Wait()
				if got := net.Stacks[0].Stats().Connections; got != 0 {
					t.Errorf("%d connections", got)
				}
			})
		})
	}
}

// A consumer that asks for nonsense is told so; its other channels go on.
func TestBadRequestsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := netstacktest.New(t, 1, nil, nil)
		consumer := netstacktest.Attempt(4, 1, 0, 1)
		x := forward(net, 0, 0)
		p := x.open(t, 0, netstack.TaskSpec{Attempt: rawProducer, Outputs: []netstack.OutputSpec{{Edge: 3,
			Consumers: []netstack.Consumer{{Attempt: consumer, At: netstack.Location{TaskManager: rawID, Incarnation: rawIncarnation}}}}}})
		start(t, p)
		r := dialRaw(t, net, 0)
		r.hello(net, 0)
		good := wire.OpenChannel{Channel: 1, Output: 3, Producer: rawProducer, Consumer: consumer, Epoch: 1, Credit: 1}
		refused := func(change func(o *wire.OpenChannel), code wire.FailureCode) {
			t.Helper()
			o := good
			o.Channel = 100
			change(&o)
			r.send(o.Append(nil))
			f, err := r.recv()
			if got, ok := f.(wire.Failure); !ok || got.Channel != 100 || got.Code != code {
				t.Errorf("got %+v, %v", f, err)
			}
		}
		refused(func(o *wire.OpenChannel) { o.Subpartition = 1 }, wire.CodeProtocol)
		refused(func(o *wire.OpenChannel) { o.Consumer.N = 2 }, wire.CodeFenced)
		refused(func(o *wire.OpenChannel) { o.Epoch = 0 }, wire.CodeFenced)
		refused(func(o *wire.OpenChannel) { o.Producer.N = 0 }, wire.CodeFenced)
		refused(func(o *wire.OpenChannel) { o.Output = 4 }, wire.CodePartitionNotFound) // after its time
		r.send(good.Append(nil))
		synctest.Wait()
		refused(func(*wire.OpenChannel) {}, wire.CodeProtocol) // has a reader

		p.Outputs[0].BroadcastEvent(partition.NewEvent(wire.TypeEvent, wire.EndOfData{}))
		m, err := r.Recv()
		if err != nil || !wire.IsBuffer(m.Parts[0]) {
			t.Fatal(m, err)
		}
		r.send(wire.Resume{Channel: 1}.Append(nil)) // of a channel that is not blocked
		if f, err := r.recv(); err != nil || f.(wire.Failure).Code != wire.CodeProtocol {
			t.Errorf("got %+v, %v", f, err)
		}
		for _, harmless := range []wire.Frame{wire.AddCredit{Channel: 1, Credit: 5}, wire.Resume{Channel: 1}, wire.CloseChannel{Channel: 1}, wire.CloseChannel{Channel: 55}} {
			r.send(harmless.Append(nil))
		}
		synctest.Wait()
		if got := net.Stacks[0].Stats().Connections; got != 1 {
			t.Errorf("%d connections", got)
		}
	})
}

// Requests for a producer that never comes are forgotten with their connection.
func TestParkedRequestsEndWithTheirConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := netstacktest.New(t, 1, nil, nil)
		r := dialRaw(t, net, 0)
		r.hello(net, 0)
		for i := range 100 {
			r.send(wire.OpenChannel{Channel: uint32(i + 1), Producer: rawProducer, Consumer: rawProducer, Epoch: 1}.Append(nil))
		}
		synctest.Wait()
		r.Close()
		synctest.Wait()
		if got := net.Stacks[0].Stats(); got.Connections != 0 {
			t.Errorf("%+v", got)
		}
	})
}

func TestChecksumsAgree(t *testing.T) {
	t.Parallel()
	net := netstacktest.New(t, 2, nil, func(i int, o *netstack.Options) { o.Checksums = i == 0 })
	for job := range 2 {
		x := forward(net, job, 1-job)
		x.job = byte(job)
		seen := x.run(t, 1000, 100, 200, nil)
		if seen[0].records[0] != 1000 {
			t.Error(fmt.Sprint(seen))
		}
	}
}
