package grpc

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/proto"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/proto/controlpb"
	"github.com/weirflow/weir/rpc"
)

var (
	clientKeepalive      = keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 10 * time.Second, PermitWithoutStream: true}
	serverKeepalive      = keepalive.ServerParameters{Time: 20 * time.Second, Timeout: 10 * time.Second}
	keepaliveEnforcement = keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}
)

// connect makes a connection to a control server; it does not wait for it.
func connect(address string, creds credentials.TransportCredentials, extra ...grpc.DialOption) (*grpc.ClientConn, error) {
	opts := []grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		grpc.WithNoProxy(),
		grpc.WithKeepaliveParams(clientKeepalive),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxMessageSize), grpc.MaxCallSendMsgSize(MaxMessageSize)),
	}
	cc, err := grpc.NewClient(address, append(opts, extra...)...)
	if err != nil {
		return nil, fmt.Errorf("job manager address %q: %w", address, err)
	}
	return cc, nil
}

// Dialer opens sessions to whichever of some JobManagers leads. Any goroutine may
// call it; sessions share nothing.
type Dialer struct {
	addresses []string
	creds     credentials.TransportCredentials
	extra     []grpc.DialOption
	group     *group.Group

	mu struct {
		sync.Mutex
		next   int    // index of the address to try next
		leader string // what a JobManager that does not lead said, tried first
	}
}

var _ rpc.Dialer = (*Dialer)(nil)

// NewDialer dials these addresses in turn. The sessions' goroutines run in g.
func NewDialer(g *group.Group, addresses []string, creds credentials.TransportCredentials, extra ...grpc.DialOption) *Dialer {
	return &Dialer{addresses: addresses, creds: creds, extra: extra, group: g}
}

// Dial opens a session; it waits for the connection until ctx ends. The session
// outlives ctx.
func (d *Dialer) Dial(ctx context.Context, h rpc.SessionHandler) (rpc.Session, error) {
	address := d.target()
	cc, err := connect(address, d.creds, d.extra...)
	if err != nil {
		return nil, err
	}
	life, cancel := context.WithCancelCause(d.group.Context())
	// Until the stream is open, the caller's context counts too.
	stop := d.group.AfterDone(ctx, "session/dial "+address, func() { cancel(context.Cause(ctx)) })
	gs, err := controlpb.NewControlClient(cc).Session(life, grpc.WaitForReady(true))
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		d.failed(err)
		cancel(err)
		_ = cc.Close()
		if unknown := CheckHost(ctx, address); unknown != nil {
			return nil, fmt.Errorf("dial job manager at %s: %w", address, unknown)
		}
		return nil, fmt.Errorf("dial job manager at %s: %w", address, ErrorOf(err))
	}
	ss := newSession(address, dialledStream{gs}, cancel)
	if err := d.run(life, ss, cc, h); err != nil {
		cancel(err)
		_ = cc.Close()
		return nil, err
	}
	return ss, nil
}

// run starts a session's two goroutines.
func (d *Dialer) run(ctx context.Context, ss *session, cc *grpc.ClientConn, h rpc.SessionHandler) error {
	if err := ss.start(ctx, d.group); err != nil {
		return err
	}
	return d.group.GoThen("session/read "+ss.peer, func(context.Context) error {
		return ss.read(h)
	}, func(err error) {
		ss.Close(err)
		d.failed(err)
		_ = cc.Close()
	})
}

// target chooses the address to dial.
func (d *Dialer) target() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if l := d.mu.leader; l != "" {
		d.mu.leader = ""
		return l
	}
	return d.addresses[d.mu.next%len(d.addresses)]
}

// failed makes the next dial try the leader that the error names, or the next address.
func (d *Dialer) failed(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var nl *rpc.NotLeaderError
	if errors.As(ErrorOf(err), &nl) && nl.Leader != "" {
		d.mu.leader = nl.Leader
		return
	}
	d.mu.next++
}

// dialledStream is the TaskManager's end of a stream.
type dialledStream struct {
	s controlpb.Control_SessionClient
}

func (d dialledStream) send(m rpc.Message) error {
	pb, err := toJobManager(m)
	if err != nil {
		return err
	}
	if size := proto.Size(pb); size > MaxMessageSize {
		if pb, err = toJobManager(inStead(m, size)); err != nil {
			return err
		}
	}
	return d.s.Send(pb)
}

// inStead is what is said if a message is too large to be sent, which would end the session
// and with it all tasks: a part of a snapshot that cannot be acknowledged is declined.
func inStead(m rpc.Message, size int) rpc.Message {
	if ack, ok := m.(rpc.AcknowledgeCheckpoint); ok {
		return rpc.DeclineCheckpoint{
			Attempt: ack.Attempt, Checkpoint: ack.Checkpoint, Reason: weir.CheckpointAsyncException,
			Message: fmt.Sprintf("the acknowledgement has %d bytes, of at most %d: lower execution.checkpointing.data-inline-threshold", size, MaxMessageSize),
		}
	}
	return m
}

func (d dialledStream) recv() (rpc.Message, error) {
	pb, err := d.s.Recv()
	if err != nil {
		return nil, err
	}
	m, err := fromJobManager(pb)
	if err != nil {
		return nil, fmt.Errorf("bad message from job manager: %w", err)
	}
	return m, nil
}
