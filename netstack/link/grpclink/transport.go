package grpclink

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/netstack/link"
)

// Window is gRPC's flow-control window in bytes, per stream and connection, both
// ways: it bounds only what is in transport, since the receiver never waits.
const Window = 2 << 20

// backlog is the number of accepted connections that may wait for Accept.
const backlog = 256

const method = "/weir.data.v1.DataPlane/Exchange"

var (
	clientKeepalive = keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 10 * time.Second, PermitWithoutStream: true}
	serverKeepalive = keepalive.ServerParameters{Time: 20 * time.Second, Timeout: 10 * time.Second}
	enforcement     = keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}
	exchange        = grpc.StreamDesc{StreamName: "Exchange", ServerStreams: true, ClientStreams: true}
)

// Options are the credentials and, in tests, the sockets of a transport.
type Options struct {
	// Client and Server are the credentials of dialled and accepted connections.
	Client, Server credentials.TransportCredentials
	// Listen opens the listening socket; nil means TCP.
	Listen func(ctx context.Context, address string) (net.Listener, error)
	// Dial opens a socket; nil means TCP.
	Dial func(ctx context.Context, address string) (net.Conn, error)
}

// Transport makes connections over gRPC. It is safe for concurrent use.
type Transport struct {
	group *group.Group
	opts  Options
}

var _ link.Transport = (*Transport)(nil)

// New returns a transport whose listeners' goroutines run in g.
func New(g *group.Group, opts Options) *Transport {
	if opts.Listen == nil {
		opts.Listen = func(ctx context.Context, address string) (net.Listener, error) {
			return new(net.ListenConfig).Listen(ctx, "tcp", address)
		}
	}
	return &Transport{group: g, opts: opts}
}

// Dial opens a connection and waits until the other end has taken it.
func (t *Transport) Dial(ctx context.Context, address string) (link.Conn, error) {
	opts := []grpc.DialOption{
		grpc.WithTransportCredentials(t.opts.Client),
		grpc.WithStaticStreamWindowSize(Window),
		grpc.WithStaticConnWindowSize(Window),
		grpc.WithKeepaliveParams(clientKeepalive),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithNoProxy(),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec{}), grpc.MaxCallRecvMsgSize(link.MaxFrame), grpc.MaxCallSendMsgSize(link.MaxFrame)),
	}
	if t.opts.Dial != nil {
		opts = append(opts, grpc.WithContextDialer(t.opts.Dial))
	}
	cc, err := grpc.NewClient("passthrough:///"+address, opts...)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	life, cancel := context.WithCancelCause(t.group.Context())
	stop := t.group.AfterDone(ctx, "link/dial", func() { cancel(context.Cause(ctx)) })
	s, err := cc.NewStream(life, &exchange, method)
	if err == nil {
		_, err = s.Header() // the other end has taken the stream; gRPC keeps nothing for retries
	}
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		cancel(err)
		_ = cc.Close()
		return nil, dialError(address, err)
	}
	return newConn(s, address, func() {
		cancel(link.ErrClosed)
		_ = cc.Close()
	}), nil
}

func dialError(address string, err error) error {
	if status.Code(err) == codes.Unavailable {
		return fmt.Errorf("dial %s: %w: %s", address, link.ErrRefused, status.Convert(err).Message())
	}
	return fmt.Errorf("dial %s: %w", address, err)
}

// Listen takes connections at an address.
func (t *Transport) Listen(ctx context.Context, address string) (link.Listener, error) {
	socket, err := t.opts.Listen(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("listen for data: %w", err)
	}
	l := &listener{
		socket:   socket,
		accepted: make(chan *conn, backlog),
		closed:   make(chan struct{}),
	}
	l.server = grpc.NewServer(
		grpc.Creds(t.opts.Server),
		grpc.StaticStreamWindowSize(Window),
		grpc.StaticConnWindowSize(Window),
		grpc.KeepaliveParams(serverKeepalive),
		grpc.KeepaliveEnforcementPolicy(enforcement),
		grpc.ForceServerCodecV2(codec{}),
		grpc.MaxRecvMsgSize(link.MaxFrame),
		grpc.MaxSendMsgSize(link.MaxFrame),
		grpc.MaxConcurrentStreams(1),
	)
	l.server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "weir.data.v1.DataPlane",
		HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{
			StreamName: exchange.StreamName, ServerStreams: true, ClientStreams: true,
			Handler: func(_ any, s grpc.ServerStream) error { return l.handle(s) },
		}},
	}, l)
	if err := l.start(t.group); err != nil {
		_ = socket.Close()
		return nil, err
	}
	return l, nil
}

// listener takes connections at one address.
type listener struct {
	socket   net.Listener
	server   *grpc.Server
	accepted chan *conn
	closed   chan struct{}
	closing  sync.Once
}

var _ link.Listener = (*listener)(nil)

// start serves until the listener is closed, and its connections until the group stops.
func (l *listener) start(g *group.Group) error {
	err := g.Go("link/accept", func(context.Context) error {
		err := l.server.Serve(l.socket)
		select {
		case <-l.closed:
			return nil // the socket was closed on purpose
		default:
			return err
		}
	})
	if err != nil {
		return err
	}
	return g.Go("link/stop", func(ctx context.Context) error {
		<-ctx.Done()
		l.server.Stop()
		return nil
	})
}

// Address is where it listens.
func (l *listener) Address() string { return l.socket.Addr().String() }

// Close stops accepting. Connections that were accepted live on until the group stops.
func (l *listener) Close() error {
	var err error
	l.closing.Do(func() {
		close(l.closed)
		err = l.socket.Close()
	})
	return err
}

// Accept waits for the next connection.
func (l *listener) Accept(ctx context.Context) (link.Conn, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	case <-l.closed:
		return nil, link.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// handle keeps an accepted stream open until its connection is closed.
func (l *listener) handle(s grpc.ServerStream) error {
	if err := s.SendHeader(nil); err != nil {
		return err
	}
	remote := "peer"
	if p, ok := peer.FromContext(s.Context()); ok {
		remote = p.Addr.String()
	}
	c := newConn(s, remote, func() {})
	select {
	case l.accepted <- c:
	case <-l.closed:
		return status.Error(codes.Unavailable, "not accepting connections")
	default:
		return status.Error(codes.ResourceExhausted, "too many connections wait to be accepted")
	}
	select {
	case <-c.closed:
	case <-s.Context().Done():
		_ = c.Close()
	}
	return nil
}
