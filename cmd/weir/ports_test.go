package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
)

// raw is a codec that sends and receives bytes as they are.
type raw struct{}

func (raw) Name() string { return "raw" }
func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}
func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// methods are what is served on the ports; each is called everywhere.
var methods = []string{
	"/weir.control.v1.Control/Session", "/weir.client.v1.Client/Submit", "/weir.client.v1.Client/Get",
	"/weir.client.v1.Client/Plan", "/weir.data.v1.DataPlane/Exchange", "/grpc.health.v1.Health/Check", "/no.such/Method",
}

func TestRandomBytesOnEveryPortHarmNobody(t *testing.T) {
	t.Parallel()
	c := newCluster(t, built(t, weirBinary), 2)
	v := c.startVictim(0)
	rng := rand.New(rand.NewPCG(drawSeed(t), 1))
	ports := []string{c.jm.ready.Control, c.jm.ready.Metrics}
	for _, tm := range c.tms {
		ports = append(ports, tm.ready.Data, tm.ready.Metrics)
	}
	for _, port := range ports {
		for range 5 {
			pour(t, port, noise(rng, 1<<rng.IntN(18)))
			pour(t, port, http2Noise(rng))
		}
		pour(t, port, []byte("GET /metrics HTTP/1.1\r\nX: "+strings.Repeat("x", 1<<20)))
		pour(t, port, nil)
		callNoise(t, port, rng)
	}
	v.unharmed()
}

func noise(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// http2Noise is HTTP/2 up to its frames, which say that they are very long, or are of
// random types and streams.
func http2Noise(rng *rand.Rand) []byte {
	b := []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	if rng.IntN(2) == 0 {
		return append(append(b, 0xff, 0xff, 0xff, byte(rng.IntN(10)), 0xff, 0x7f, 0xff, 0xff, 0xff), noise(rng, 1<<16)...)
	}
	for range 20 {
		n := rng.IntN(200)
		b = append(b, 0, 0, byte(n), byte(rng.IntN(12)), byte(rng.Uint32()), 0, 0, 0, byte(rng.IntN(4)))
		b = append(b, noise(rng, n)...)
	}
	return b
}

// pour writes bytes to a port and reads what comes, until the other side closes or
// has nothing more to say.
func pour(t *testing.T, port string, b []byte) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", port, patience)
	if err != nil {
		t.Fatalf("%s accepts no connection: %v", port, err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(200 * time.Millisecond))
	_, _ = conn.Write(b) // the other side may close while we write
	_, _ = io.Copy(io.Discard, conn)
}

// callNoise makes proper calls with messages that are none: random bytes, protobuf
// that claims to be longer than it is, and more than a message may have.
func callNoise(t *testing.T, port string, rng *rand.Rand) {
	t.Helper()
	cc, err := grpc.NewClient("passthrough:///"+port, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()
	messages := [][]byte{
		nil, noise(rng, 30), noise(rng, 5000),
		{0x0a, 0xff, 0xff, 0xff, 0xff, 0x07, 1, 2, 3},                       // field 1 of 2 GiB
		{0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},  // a length beyond 63 bits
		append([]byte{0x12, 0x80, 0x80, 0x80, 0x10}, noise(rng, 32<<20)...), // 32 MiB
	}
	for _, method := range methods {
		for _, m := range messages {
			// A health check may be empty, and the data plane refuses with a frame of its own.
			mayEnd := strings.HasSuffix(method, "Check") || strings.HasSuffix(method, "Exchange")
			if err := callOnce(cc, method, m); err == nil && len(m) > 0 && !mayEnd {
				t.Errorf("%s on %s took %s", method, port, shorten(m))
			}
		}
	}
}

// callOnce sends one message and returns how the call ended; one that goes on is
// ended, and is as good as refused.
func callOnce(cc *grpc.ClientConn, method string, m []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	s, err := cc.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method, grpc.ForceCodecV2(raw{}), grpc.MaxCallSendMsgSize(64<<20))
	if err != nil {
		return err
	}
	if err := s.SendMsg(m); err != nil {
		return s.RecvMsg(new([]byte)) // what the server ended the call with
	}
	if err := s.CloseSend(); err != nil {
		return err
	}
	for {
		if err := s.RecvMsg(new([]byte)); err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
	}
}

func shorten(b []byte) string {
	return fmt.Sprintf("%d bytes that begin with %x", len(b), b[:min(len(b), 16)])
}
