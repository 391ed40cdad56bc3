package client_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/client"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/rpc"
	weirgrpc "github.com/weirflow/weir/rpc/grpc"
)

// jobManager answers as it is told to.
type jobManager struct {
	rpc.ClientGateway
	address string
	mu      struct {
		sync.Mutex
		calls  int
		answer func(ctx context.Context, call int) (rpc.JobDetail, error)
	}
}

func (j *jobManager) answer(f func(ctx context.Context, call int) (rpc.JobDetail, error)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.mu.answer = f
}

func (j *jobManager) Get(ctx context.Context, _ string) (rpc.JobDetail, error) {
	j.mu.Lock()
	j.mu.calls++
	call, answer := j.mu.calls, j.mu.answer
	j.mu.Unlock()
	return answer(ctx, call)
}

func (j *jobManager) Submit(ctx context.Context, r rpc.SubmitRequest) (rpc.SubmitReply, error) {
	_, err := j.Get(ctx, "")
	return rpc.SubmitReply{Job: weir.JobID{1}, Name: r.Name}, err
}

func (j *jobManager) called() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.mu.calls
}

// noSessions refuses TaskManagers.
type noSessions struct{}

func (noSessions) Accept(context.Context) (rpc.SessionHandler, error) {
	return nil, &rpc.NotLeaderError{}
}

func serve(t *testing.T, answer func(ctx context.Context, call int) (rpc.JobDetail, error)) *jobManager {
	t.Helper()
	j := &jobManager{}
	j.answer(answer)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	j.address = l.Addr().String()
	g := group.New(context.Background(), "jobmanager")
	s := grpc.NewServer(weirgrpc.ServerOptions()...)
	weirgrpc.NewServer(g, noSessions{}, j).Register(s)
	go s.Serve(l)
	t.Cleanup(func() {
		s.Stop()
		if err := g.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return j
}

func dial(t *testing.T, o client.Options, addresses ...string) *client.Client {
	t.Helper()
	c, err := client.New(addresses, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func running(context.Context, int) (rpc.JobDetail, error) {
	return rpc.JobDetail{JobSummary: rpc.JobSummary{Job: weir.JobID{7}, Status: rpc.JobRunning}}, nil
}

// closed is an address where nobody listens.
func closed(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestLeaderIsFoundAmongSeveral(t *testing.T) {
	t.Parallel()
	leader := serve(t, running)
	follower := serve(t, func(context.Context, int) (rpc.JobDetail, error) {
		return rpc.JobDetail{}, &rpc.NotLeaderError{Leader: leader.address}
	})
	lost := serve(t, func(context.Context, int) (rpc.JobDetail, error) { return rpc.JobDetail{}, &rpc.NotLeaderError{} })
	for name, addresses := range map[string][]string{
		"the follower names it": {follower.address},
		"it is the next":        {closed(t), lost.address, leader.address},
		"over two hops":         {closed(t), " " + follower.address + " ", ""},
	} {
		d, err := dial(t, client.Options{}, addresses...).Get(t.Context(), "j")
		if err != nil || d.Job != (weir.JobID{7}) {
			t.Errorf("%s: %v, %v", name, d.Job, err)
		}
	}
}

func TestWhatAJobManagerSaysIsNotTakenForItsAbsence(t *testing.T) {
	t.Parallel()
	j := serve(t, func(context.Context, int) (rpc.JobDetail, error) {
		return rpc.JobDetail{}, &rpc.Error{Code: rpc.CodeUnavailable, Message: "no space", Hint: "make room"}
	})
	_, err := dial(t, client.Options{}, j.address).Get(t.Context(), "j")
	var e *rpc.Error
	if !errors.As(err, &e) || e.Message != "no space" || e.Hint != "make room" || e.Unreached {
		t.Errorf("%+v", err)
	}
	j.answer(func(context.Context, int) (rpc.JobDetail, error) {
		return rpc.JobDetail{}, &rpc.Error{Code: rpc.CodeNotFound, Message: "no such job"}
	})
	before := j.called()
	if _, err = dial(t, client.Options{}, j.address, j.address).Get(t.Context(), "j"); rpc.CodeOf(err) != rpc.CodeNotFound || j.called() != before+1 {
		t.Errorf("%v after %d calls", err, j.called()-before)
	}
}

func TestNobodyThereIsSaidWithTheAddress(t *testing.T) {
	t.Parallel()
	address := closed(t)
	_, err := dial(t, client.Options{}, address).Get(t.Context(), "j")
	if rpc.CodeOf(err) != rpc.CodeUnavailable || !strings.Contains(err.Error(), "cannot reach a JobManager at "+address) || !strings.Contains(err.Error(), "--jobmanager") {
		t.Error(err)
	}
}

func TestUnknownHostIsSaid(t *testing.T) {
	t.Parallel()
	_, err := dial(t, client.Options{}, "nobody.invalid:6123").Get(t.Context(), "j")
	if rpc.CodeOf(err) != rpc.CodeUnavailable || !strings.Contains(err.Error(), `the host name is not known here: "nobody.invalid"`) {
		t.Error(err)
	}
}

func TestCallsAreBounded(t *testing.T) {
	t.Parallel()
	j := serve(t, func(ctx context.Context, _ int) (rpc.JobDetail, error) {
		<-ctx.Done()
		return rpc.JobDetail{}, ctx.Err()
	})
	c := dial(t, client.Options{CallTimeout: 50 * time.Millisecond, BuildCallTimeout: 60 * time.Millisecond}, j.address)
	if _, err := c.Get(t.Context(), "j"); err == nil || !strings.Contains(err.Error(), "no answer within 50ms") {
		t.Error(err)
	}
	if _, err := c.Submit(t.Context(), rpc.SubmitRequest{}); err == nil || !strings.Contains(err.Error(), "no answer within 60ms") {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, errors.New("had enough"))
	defer cancel()
	if _, err := c.Get(ctx, "j"); err == nil || err.Error() != "had enough" {
		t.Error(err)
	}
}

func TestAwaitOutlastsAJobManagerThatIsAway(t *testing.T) {
	t.Parallel()
	j := serve(t, func(_ context.Context, call int) (rpc.JobDetail, error) {
		switch call {
		case 1:
			return rpc.JobDetail{}, &rpc.NotLeaderError{}
		case 2:
			return rpc.JobDetail{}, &rpc.Error{Code: rpc.CodeUnavailable, Message: "starting"}
		case 3:
			return running(t.Context(), 0)
		default:
			return rpc.JobDetail{JobSummary: rpc.JobSummary{Status: rpc.JobFinished}}, nil
		}
	})
	c := dial(t, client.Options{}, j.address)
	if d, err := client.Await(t.Context(), c, "j", client.Ended); err != nil || d.Status != rpc.JobFinished || j.called() != 4 {
		t.Errorf("%s after %d calls: %v", d.Status, j.called(), err)
	}
	j.answer(func(context.Context, int) (rpc.JobDetail, error) {
		return rpc.JobDetail{}, &rpc.Error{Code: rpc.CodeNotFound, Message: "no such job"}
	})
	if _, err := client.Await(t.Context(), c, "j", client.Ended); rpc.CodeOf(err) != rpc.CodeNotFound {
		t.Error(err)
	}
	j.answer(running)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if d, err := client.Await(ctx, c, "j", client.Ended); !errors.Is(err, context.DeadlineExceeded) || d.Status != rpc.JobRunning {
		t.Errorf("%s, %v", d.Status, err)
	}
}

// While a leader is elected nobody leads, and the one that is remembered is gone.
func TestElectionsAreWaitedFor(t *testing.T) {
	t.Parallel()
	gone := closed(t)
	j := serve(t, func(_ context.Context, call int) (rpc.JobDetail, error) {
		switch call {
		case 1:
			return rpc.JobDetail{}, &rpc.NotLeaderError{Leader: gone}
		case 2, 3:
			return rpc.JobDetail{}, &rpc.NotLeaderError{}
		default:
			return running(t.Context(), 0)
		}
	})
	d, err := dial(t, client.Options{}, gone, j.address).Get(t.Context(), "j")
	if err != nil || d.Job != (weir.JobID{7}) {
		t.Errorf("%v, %v", d.Job, err)
	}
	j.answer(func(context.Context, int) (rpc.JobDetail, error) { return rpc.JobDetail{}, &rpc.NotLeaderError{} })
	before := j.called()
	_, err = dial(t, client.Options{ElectionTimeout: time.Millisecond}, j.address).Get(t.Context(), "j")
	if rpc.CodeOf(err) != rpc.CodeUnavailable || !strings.Contains(err.Error(), "no JobManager leads, after 1ms") || j.called() == before {
		t.Errorf("%v after %d calls", err, j.called()-before)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, errors.New("had enough"))
	defer cancel()
	if _, err := dial(t, client.Options{}, j.address).Get(ctx, "j"); err == nil || err.Error() != "had enough" {
		t.Error(err)
	}
}

func TestMalformedAddressesAreRefused(t *testing.T) {
	t.Parallel()
	for address, fault := range map[string]string{
		"foo:bar": `the port "bar"`, "foo:0": `the port "0"`, "foo:65536": `"65536"`, "foo": "it has no port", ":6123": "it has no host",
		"http://a:1": "it is not host:port", "a b:1": "it has no host", "[::1:6123": "it is not host:port",
	} {
		_, err := client.New([]string{"127.0.0.1:6123", address}, client.Options{})
		if rpc.CodeOf(err) != rpc.CodeInvalidArgument || !strings.Contains(err.Error(), "--jobmanager") || !strings.Contains(err.Error(), fault) {
			t.Errorf("%s: %v", address, err)
		}
	}
	list, err := client.ParseAddresses([]string{" jm-1.example:6123", "", "[::1]:6124"})
	if err != nil || len(list) != 2 || list[0] != "jm-1.example:6123" {
		t.Errorf("%q, %v", list, err)
	}
}

func TestNoAddressAndAClosedClientAreErrors(t *testing.T) {
	t.Parallel()
	if _, err := client.New([]string{" ", ""}, client.Options{}); rpc.CodeOf(err) != rpc.CodeInvalidArgument {
		t.Error(err)
	}
	c := dial(t, client.Options{}, closed(t))
	if err := errors.Join(c.Close(), c.Close()); err != nil {
		t.Error(err)
	}
	if _, err := c.Get(t.Context(), "j"); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Error(err)
	}
}
