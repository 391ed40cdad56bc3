package grpc

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/proto/clientpb"
	"github.com/weirflow/weir/proto/controlpb"
	"github.com/weirflow/weir/rpc"
)

// MaxMessageSize bounds a control message in bytes, both ways.
const MaxMessageSize = 64 << 20

// Server is the JobManager's side: it accepts sessions of TaskManagers and calls
// of clients.
type Server struct {
	controlpb.UnimplementedControlServer
	clientpb.UnimplementedClientServer
	acceptor rpc.Acceptor
	gateway  rpc.ClientGateway
	group    *group.Group
}

// NewServer lets acceptor say who hears a session, and serves calls to gateway. The
// sessions' goroutines run in g.
func NewServer(g *group.Group, acceptor rpc.Acceptor, gateway rpc.ClientGateway) *Server {
	return &Server{acceptor: acceptor, gateway: gateway, group: g}
}

// Register adds the services to a gRPC server made with [ServerOptions].
func (s *Server) Register(gs *grpc.Server) {
	controlpb.RegisterControlServer(gs, s)
	clientpb.RegisterClientServer(gs, s)
}

// ServerOptions are the limits that a control server needs.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(MaxMessageSize),
		grpc.MaxSendMsgSize(MaxMessageSize),
		grpc.KeepaliveParams(serverKeepalive),
		grpc.KeepaliveEnforcementPolicy(keepaliveEnforcement),
	}
}

// Session runs one TaskManager's session on gRPC's goroutine.
func (s *Server) Session(gs controlpb.Control_SessionServer) error {
	ctx, cancel := context.WithCancelCause(gs.Context())
	defer cancel(nil)
	name := "task manager"
	if p, ok := peer.FromContext(gs.Context()); ok {
		name = p.Addr.String()
	}
	handler, err := s.acceptor.Accept(ctx)
	if err != nil {
		return StatusOf(err)
	}
	ss := newSession(name, acceptedStream{gs}, cancel)
	if err := ss.start(ctx, s.group); err != nil {
		return StatusOf(&rpc.Error{Code: rpc.CodeUnavailable, Message: "the JobManager is stopping"})
	}
	// gRPC ends a blocked receive only when the handler returns, so the reader is
	// the one that is abandoned: it ends as soon as the stream's context does.
	read := make(chan error, 1)
	err = s.group.GoThen("session/read "+name, func(context.Context) error {
		read <- ss.read(handler)
		return nil
	}, func(err error) {
		if err != nil { // a panic of the handler
			ss.Close(err)
			read <- err
		}
	})
	if err != nil {
		ss.Close(err)
		return StatusOf(&rpc.Error{Code: rpc.CodeUnavailable, Message: "the JobManager is stopping"})
	}
	select {
	case err := <-read:
		return StatusOf(err)
	case <-ctx.Done():
		return StatusOf(context.Cause(ctx))
	}
}

// acceptedStream is the JobManager's end of a stream.
type acceptedStream struct {
	s controlpb.Control_SessionServer
}

func (a acceptedStream) send(m rpc.Message) error {
	pb, err := toTaskManager(m)
	if err != nil {
		return err
	}
	return a.s.Send(pb)
}

func (a acceptedStream) recv() (rpc.Message, error) {
	pb, err := a.s.Recv()
	if err != nil {
		return nil, err
	}
	m, err := fromTaskManager(pb)
	if err != nil {
		return nil, fmt.Errorf("bad message from task manager: %w", err)
	}
	return m, nil
}
