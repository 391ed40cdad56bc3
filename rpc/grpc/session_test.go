package grpc

import (
	"context"
	"errors"
	"net"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/rpc"
)

// listener notes what it hears; it is read only while the bubble is at rest.
type listener struct {
	heard  []rpc.Message
	closed []error
	sess   rpc.Session
}

func (l *listener) Accept(context.Context) (rpc.SessionHandler, error) { return l, nil }

func (l *listener) Receive(s rpc.Session, m rpc.Message) { l.sess = s; l.heard = append(l.heard, m) }
func (l *listener) Closed(_ rpc.Session, cause error)    { l.closed = append(l.closed, cause) }

// gateway answers clients from a table.
type gateway struct {
	rpc.ClientGateway
	submit func(rpc.SubmitRequest) (rpc.SubmitReply, error)
}

func (g gateway) Submit(_ context.Context, r rpc.SubmitRequest) (rpc.SubmitReply, error) {
	return g.submit(r)
}

// cluster is a control server over an in-memory listener.
type cluster struct {
	group *group.Group
	dial  grpc.DialOption
	stop  func()
}

func serve(t *testing.T, h rpc.Acceptor, gw rpc.ClientGateway) *cluster {
	g := group.New(t.Context(), "test")
	lis := bufconn.Listen(1 << 20)
	gs := grpc.NewServer(ServerOptions()...)
	NewServer(g, h, gw).Register(gs)
	if err := g.Go("serve", func(context.Context) error { return gs.Serve(lis) }); err != nil {
		t.Fatal(err)
	}
	return &cluster{
		group: g,
		dial:  grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }),
		stop: func() {
			gs.Stop()
			if err := g.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		},
	}
}

func (c *cluster) dialer() *Dialer {
	return NewDialer(c.group, []string{"passthrough:a", "passthrough:b"}, insecure.NewCredentials(), c.dial)
}

func TestSessionOverGRPC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jm, tm := &listener{}, &listener{}
		c := serve(t, jm, gateway{})
		s, err := c.dialer().Dial(t.Context(), tm)
		if err != nil {
			t.Fatal(err)
		}
		reg := rpc.Register{Registration: rpc.Registration{ID: weir.TaskManagerID{1}, Slots: 2, CodeID: "c"}}
		if err := s.Send(reg); err != nil {
			t.Fatal(err)
		}
		for i := range 50 {
			if err := s.Send(rpc.OperatorEventAck{Seq: uint64(i)}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if len(jm.heard) != 51 || !reflect.DeepEqual(jm.heard[0], reg) || jm.heard[50].(rpc.OperatorEventAck).Seq != 49 {
			t.Fatalf("heard %d messages, first %+v", len(jm.heard), jm.heard[:1])
		}
		if err := jm.sess.Send(rpc.Registered{Epoch: 7, HeartbeatInterval: time.Second}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(tm.heard) != 1 || tm.heard[0].(rpc.Registered).Epoch != 7 {
			t.Fatalf("heard %+v", tm.heard)
		}
		jm.sess.Close(&rpc.NotLeaderError{Leader: "there:1"})
		synctest.Wait()
		if len(jm.closed) != 1 || len(tm.closed) != 1 || !errors.Is(tm.closed[0], rpc.ErrNotLeader) {
			t.Fatalf("closed by %v and %v", jm.closed, tm.closed)
		}
		c.stop()
	})
}

func TestNextDialTriesTheLeader(t *testing.T) {
	d := NewDialer(nil, []string{"a", "b"}, insecure.NewCredentials())
	if got := d.target(); got != "a" {
		t.Fatalf("first target is %s", got)
	}
	d.failed(errors.New("refused"))
	if got := d.target(); got != "b" {
		t.Fatalf("after a failure the target is %s", got)
	}
	d.failed(StatusOf(&rpc.NotLeaderError{Leader: "c"}))
	if got := d.target(); got != "c" {
		t.Fatalf("the leader is c, the target %s", got)
	}
	if got := d.target(); got != "b" {
		t.Fatalf("a leader is tried once, then %s", got)
	}
}

func TestLostTaskManagerIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jm, tm := &listener{}, &listener{}
		c := serve(t, jm, gateway{})
		s, err := c.dialer().Dial(t.Context(), tm)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s.Close(errors.New("killed"))
		synctest.Wait()
		if len(jm.closed) != 1 || len(tm.closed) != 1 {
			t.Fatalf("closed by %v and %v", jm.closed, tm.closed)
		}
		c.stop()
	})
}

func TestDialGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group.New(t.Context(), "test")
		nowhere := grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return nil, errors.New("refused") })
		d := NewDialer(g, []string{"passthrough:a"}, insecure.NewCredentials(), nowhere)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := d.Dial(ctx, &listener{}); err == nil {
			t.Fatal("dialled nowhere")
		}
		if err := g.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

func TestClientErrorsKeepCodeHintAndLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := map[string]error{
			"taken":   &rpc.Error{Code: rpc.CodeAlreadyExists, Message: "name is taken", Hint: "use another"},
			"leader":  &rpc.NotLeaderError{Leader: "x:1"},
			"strange": errors.New("boom"),
		}
		c := serve(t, &listener{}, gateway{submit: func(r rpc.SubmitRequest) (rpc.SubmitReply, error) {
			return rpc.SubmitReply{Job: weir.JobID{9}, Name: r.Name}, answers[r.Entrypoint]
		}})
		cl, err := NewClient("passthrough:a", insecure.NewCredentials(), c.dial)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := cl.Submit(t.Context(), rpc.SubmitRequest{Name: "n"}); err != nil || r.Job != (weir.JobID{9}) || r.Name != "n" {
			t.Errorf("submit: %+v, %v", r, err)
		}
		_, err = cl.Submit(t.Context(), rpc.SubmitRequest{Entrypoint: "taken"})
		var e *rpc.Error
		if !errors.As(err, &e) || *e != *(answers["taken"].(*rpc.Error)) {
			t.Errorf("taken: %#v", err)
		}
		_, err = cl.Submit(t.Context(), rpc.SubmitRequest{Entrypoint: "leader"})
		var nl *rpc.NotLeaderError
		if !errors.As(err, &nl) || nl.Leader != "x:1" {
			t.Errorf("leader: %#v", err)
		}
		_, err = cl.Submit(t.Context(), rpc.SubmitRequest{Entrypoint: "strange"})
		if rpc.CodeOf(err) != rpc.CodeInternal {
			t.Errorf("strange: %#v", err)
		}
		if err := cl.Close(); err != nil {
			t.Error(err)
		}
		c.stop()
	})
}
