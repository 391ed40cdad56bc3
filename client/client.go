package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weirflow/weir/rpc"
	weirgrpc "github.com/weirflow/weir/rpc/grpc"
)

// Options of a client.
type Options struct {
	// Credentials secure the connection; nil means plaintext.
	Credentials credentials.TransportCredentials
	// CallTimeout bounds one attempt of a call; 0 means 15 s. Submit and Plan run the
	// job's builder and get longer: BuildCallTimeout, 0 means 90 s.
	CallTimeout      time.Duration
	BuildCallTimeout time.Duration
	// ElectionTimeout is how long a call waits for a leader while JobManagers answer that
	// they do not lead; 0 means 20 s, which is more than an election takes.
	ElectionTimeout time.Duration
}

// Client asks whichever of some JobManagers leads.
type Client struct {
	opts Options

	mu struct {
		sync.Mutex
		addresses []string
		current   int
		conns     map[string]*weirgrpc.Client
		closed    bool
	}
}

var _ rpc.ClientGateway = (*Client)(nil)

// New makes a client of the JobManagers at these addresses (host:port). It
// connects when it is first used.
func New(addresses []string, opts Options) (*Client, error) {
	if opts.Credentials == nil {
		opts.Credentials = insecure.NewCredentials()
	}
	if opts.CallTimeout == 0 {
		opts.CallTimeout = 15 * time.Second
	}
	if opts.BuildCallTimeout == 0 {
		opts.BuildCallTimeout = 90 * time.Second
	}
	if opts.ElectionTimeout == 0 {
		opts.ElectionTimeout = 20 * time.Second
	}
	list, err := ParseAddresses(addresses)
	if err != nil {
		return nil, err
	}
	c := &Client{opts: opts}
	c.mu.addresses = list
	c.mu.conns = make(map[string]*weirgrpc.Client)
	return c, nil
}

// Close closes the connections. Calls under way fail.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.closed = true
	var errs []error
	for _, cc := range c.mu.conns {
		errs = append(errs, cc.Close())
	}
	clear(c.mu.conns)
	return errors.Join(errs...)
}

// conn returns the connection to the address that was asked last with success, or
// to the given leader.
func (c *Client) conn(leader string) (*weirgrpc.Client, string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return nil, "", &rpc.Error{Code: rpc.CodeUnavailable, Message: "client is closed"}
	}
	address := leader
	if address == "" {
		address = c.mu.addresses[c.mu.current%len(c.mu.addresses)]
	}
	cc := c.mu.conns[address]
	if cc == nil {
		var err error
		if cc, err = weirgrpc.NewClient(address, c.opts.Credentials); err != nil {
			return nil, address, &rpc.Error{Code: rpc.CodeInvalidArgument, Message: err.Error()}
		}
		c.mu.conns[address] = cc
	}
	return cc, address, nil
}

// next makes the following address the one to ask, and says how many there are.
func (c *Client) next() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.current++
	return len(c.mu.addresses)
}

// electionPause is how long a call waits before it asks JobManagers again of which none
// leads.
const electionPause = 200 * time.Millisecond

// call asks JobManagers until one answers that leads: while some answer that they do not,
// a leader is being elected, which is waited for. limit bounds each attempt.
func call[T any](ctx context.Context, c *Client, limit time.Duration, ask func(ctx context.Context, cc *weirgrpc.Client) (T, error)) (T, error) {
	until := time.Now().Add(c.opts.ElectionTimeout)
	for {
		reply, electing, err := round(ctx, c, limit, ask)
		if err == nil || !electing {
			return reply, err
		}
		if !time.Now().Before(until) {
			return reply, noLeader(c.opts.ElectionTimeout, err)
		}
		t := time.NewTimer(electionPause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return reply, context.Cause(ctx)
		}
	}
}

// round asks one JobManager after the other until one answers that leads, or each was
// asked; electing says that at least one answered that it does not lead.
func round[T any](ctx context.Context, c *Client, limit time.Duration, ask func(ctx context.Context, cc *weirgrpc.Client) (T, error)) (zero T, electing bool, err error) {
	leader, redirects := "", 0
	for asked := 1; ; {
		cc, address, err := c.conn(leader)
		if err != nil {
			return zero, false, err
		}
		one, cancel := context.WithTimeout(ctx, limit)
		reply, err := ask(one, cc)
		if err != nil && expired(one) != nil && expired(ctx) == nil {
			err = &rpc.Error{Code: rpc.CodeUnavailable, Message: fmt.Sprintf("no answer within %s", limit), Unreached: true}
		}
		cancel()
		nl, refused := errors.AsType[*rpc.NotLeaderError](err)
		electing = electing || refused
		switch {
		case err == nil:
			return reply, false, nil
		case refused && nl.Leader != "" && redirects < 3:
			leader = nl.Leader
			redirects++
			continue
		case expired(ctx) != nil:
			return zero, false, expired(ctx)
		case !refused && rpc.CodeOf(err) != rpc.CodeUnavailable:
			return zero, false, err
		}
		leader = ""
		if asked >= c.next() {
			return zero, electing, unreachable(ctx, address, err)
		}
		asked++
	}
}

// noLeader says that JobManagers are there, but none leads.
func noLeader(waited time.Duration, err error) error {
	return &rpc.Error{
		Code:    rpc.CodeUnavailable,
		Message: fmt.Sprintf("no JobManager leads, after %s: %v", waited, err),
		Hint:    "those that answer wait for a leader: do they reach their etcd, and are all of them named by --jobmanager?",
	}
}

// expired is the cause of ctx's end, or nil before it. A call may fail for its
// deadline a moment before ctx itself notices.
func expired(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		<-ctx.Done()
	}
	return context.Cause(ctx)
}

// unreachable adds what a person can do.
func unreachable(ctx context.Context, address string, err error) error {
	var e *rpc.Error
	if !errors.As(err, &e) || !e.Unreached {
		return err
	}
	why := e.Message
	if unknown := weirgrpc.CheckHost(ctx, address); unknown != nil {
		why = unknown.Error()
	}
	return &rpc.Error{
		Code: rpc.CodeUnavailable, Unreached: true,
		Message: fmt.Sprintf("cannot reach a JobManager at %s: %s", address, why),
		Hint:    "is it running? give its address with --jobmanager",
	}
}

// Submit starts a job, or finds the one with this request id.
func (c *Client) Submit(ctx context.Context, r rpc.SubmitRequest) (rpc.SubmitReply, error) {
	return call(ctx, c, c.opts.BuildCallTimeout, func(ctx context.Context, cc *weirgrpc.Client) (rpc.SubmitReply, error) { return cc.Submit(ctx, r) })
}

// List lists the jobs, newest first.
func (c *Client) List(ctx context.Context) ([]rpc.JobSummary, error) {
	return call(ctx, c, c.opts.CallTimeout, func(ctx context.Context, cc *weirgrpc.Client) ([]rpc.JobSummary, error) { return cc.List(ctx) })
}

// Get shows one job, by id or by name.
func (c *Client) Get(ctx context.Context, job string) (rpc.JobDetail, error) {
	return call(ctx, c, c.opts.CallTimeout, func(ctx context.Context, cc *weirgrpc.Client) (rpc.JobDetail, error) { return cc.Get(ctx, job) })
}

// Cancel ends a job. It may be repeated.
func (c *Client) Cancel(ctx context.Context, job string) error {
	_, err := call(ctx, c, c.opts.CallTimeout, func(ctx context.Context, cc *weirgrpc.Client) (struct{}, error) {
		return struct{}{}, cc.Cancel(ctx, job)
	})
	return err
}

// Checkpoints lists a job's recent checkpoints, newest first.
func (c *Client) Checkpoints(ctx context.Context, job string) (rpc.CheckpointList, error) {
	return call(ctx, c, c.opts.CallTimeout, func(ctx context.Context, cc *weirgrpc.Client) (rpc.CheckpointList, error) {
		return cc.Checkpoints(ctx, job)
	})
}

// Plan shows what a submission would run.
func (c *Client) Plan(ctx context.Context, r rpc.SubmitRequest) (rpc.PlanReply, error) {
	return call(ctx, c, c.opts.BuildCallTimeout, func(ctx context.Context, cc *weirgrpc.Client) (rpc.PlanReply, error) { return cc.Plan(ctx, r) })
}

// Cluster describes the cluster.
func (c *Client) Cluster(ctx context.Context) (rpc.ClusterInfo, error) {
	return call(ctx, c, c.opts.CallTimeout, func(ctx context.Context, cc *weirgrpc.Client) (rpc.ClusterInfo, error) { return cc.Cluster(ctx) })
}

// pollEvery is how often the waiting calls ask.
const pollEvery = 200 * time.Millisecond

// Await asks for the job until done says so, or ctx ends. A JobManager that is
// away for a while is waited for.
func Await(ctx context.Context, g rpc.ClientGateway, job string, done func(rpc.JobDetail) bool) (rpc.JobDetail, error) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var last rpc.JobDetail
	for {
		d, err := g.Get(ctx, job)
		switch {
		case err == nil:
			if last = d; done(d) {
				return d, nil
			}
		case rpc.CodeOf(err) != rpc.CodeUnavailable && !errors.Is(err, rpc.ErrNotLeader) && expired(ctx) == nil:
			return last, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return last, context.Cause(ctx)
		}
	}
}

// CancelAndAwait cancels the job and waits until it has ended, or ctx ends; each
// answer is shown. A cancellation is in the JobManager's memory only: if another
// leader goes on with the job, it is told again.
func CancelAndAwait(ctx context.Context, g rpc.ClientGateway, job string, show func(rpc.JobDetail)) (rpc.JobDetail, error) {
	if err := g.Cancel(ctx, job); err != nil {
		return rpc.JobDetail{}, err
	}
	return Await(ctx, g, job, func(d rpc.JobDetail) bool {
		show(d)
		if d.Status != rpc.JobCancelling && !d.Status.Final() {
			_ = g.Cancel(ctx, job) // if it fails, the next answer says so or it is tried again
		}
		return d.Status.Final()
	})
}

// Running says whether every task of the job runs.
func Running(d rpc.JobDetail) bool {
	return d.Status == rpc.JobRunning && d.Tasks != nil && d.JobSummary.Tasks == d.JobSummary.Running
}

// Ended says whether the job has ended.
func Ended(d rpc.JobDetail) bool { return d.Status.Final() }
