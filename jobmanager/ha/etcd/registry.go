package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/jobmanager/ha"
)

// Options of a registry.
type Options struct {
	// Cluster separates clusters that share an etcd. Not empty.
	Cluster string
	// LeaseTTL is how long a leader that is not heard of is waited for: whole seconds,
	// at least 1. 0: ha.DefaultLeaseTTL. A JobManager with an etcd of its own takes a
	// long one: nobody waits for it, and a disk that stalls must not end it.
	LeaseTTL time.Duration
	// CallTimeout bounds one request. 0: 5 s.
	CallTimeout time.Duration
	// Sole says that no other JobManager exists, so that a leader found at the first
	// campaign is an earlier process of this one, whose lease is revoked.
	Sole   bool
	Logger *zap.Logger // nil: none
}

func (o *Options) setDefaults() error {
	if o.Cluster == "" {
		return errors.New("etcd registry: the cluster id is empty")
	}
	if o.LeaseTTL == 0 {
		o.LeaseTTL = ha.DefaultLeaseTTL
	}
	if o.LeaseTTL < time.Second || o.LeaseTTL%time.Second != 0 {
		return fmt.Errorf("etcd registry: lease time to live is %v, want whole seconds", o.LeaseTTL)
	}
	if o.CallTimeout == 0 {
		o.CallTimeout = 5 * time.Second
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return nil
}

// Registry is an [ha.Registry] on etcd.
type Registry struct {
	o      Options
	client *clientv3.Client
	prefix string
	group  *group.Group
	mu     struct {
		sync.Mutex
		closed  bool
		leading *leadership                          // the last one that was won
		calls   map[*request]context.CancelCauseFunc // under way
	}
}

var _ ha.Registry = (*Registry)(nil)

// request is the identity of a call under way.
type request struct{ _ byte }

// New returns a registry over the client, which is the registry's from now on.
func New(client *clientv3.Client, o Options) (*Registry, error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	r := &Registry{
		o: o, client: client, prefix: "/weir/" + url.PathEscape(o.Cluster) + "/",
		group: group.New(context.Background(), "ha/etcd"),
	}
	r.mu.calls = make(map[*request]context.CancelCauseFunc)
	return r, nil
}

// Dial connects to an etcd cluster. It does not wait for an answer: calls do.
func Dial(endpoints []string, o Options) (*Registry, error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            endpoints,
		DialTimeout:          o.CallTimeout,
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 5 * time.Second,
		AutoSyncInterval:     0, // the endpoints are the user's
		Logger:               o.Logger.Named("etcd-client").WithOptions(zap.IncreaseLevel(zap.WarnLevel)),
	})
	if err != nil {
		return nil, fmt.Errorf("etcd client for %q: %w", endpoints, err)
	}
	return New(client, o)
}

// Close resigns and ends the connection.
func (r *Registry) Close() error {
	l, first := r.shut()
	if !first {
		return nil
	}
	if l != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := l.resign(ctx, ha.ErrClosed); err != nil {
			r.o.Logger.Warn("leadership was not given back; it ends with its lease", zap.Error(err))
		}
	}
	return r.disconnect()
}

// shut refuses calls from now on, cancels those under way, and says whether it is the
// first to.
func (r *Registry) shut() (leading *leadership, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first = !r.mu.closed
	r.mu.closed = true
	for _, cancel := range r.mu.calls {
		cancel(ha.ErrClosed)
	}
	return r.mu.leading, first
}

// disconnect ends the goroutines and the client.
func (r *Registry) disconnect() error {
	ctx, cancel := context.WithTimeout(context.Background(), r.o.CallTimeout)
	defer cancel()
	err := r.group.Stop(ctx)
	if cerr := r.client.Close(); err == nil && !errors.Is(cerr, context.Canceled) {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("close etcd registry: %w", err)
	}
	return nil
}

// call makes one request, bounded in time; the registry's end cancels it. An error is
// given the meaning that no answer has.
func (r *Registry) call(ctx context.Context, noAnswer error, request func(context.Context) error) error {
	ctx, done, err := r.enter(ctx, noAnswer)
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, r.o.CallTimeout)
	defer cancel()
	if err := request(ctx); err != nil {
		return withMeaning(ctx, noAnswer, err)
	}
	return nil
}

// enter refuses calls on a closed registry, and derives a context that ends with it.
func (r *Registry) enter(ctx context.Context, noAnswer error) (context.Context, func(), error) {
	ctx, cancel := context.WithCancelCause(ctx)
	call := new(request)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.closed {
		cancel(nil)
		return nil, nil, fmt.Errorf("%w: %w", noAnswer, ha.ErrClosed)
	}
	r.mu.calls[call] = cancel
	return ctx, func() {
		cancel(nil)
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.mu.calls, call)
	}, nil
}

// withMeaning wraps the error of a request with what no answer means; the end of the
// call's or the registry's context is named too, for clients turn it into a status.
func withMeaning(ctx context.Context, noAnswer, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w: %w", noAnswer, cause, err)
	}
	return fmt.Errorf("%w: %w", noAnswer, err)
}

// Get reads one key, linearizably.
func (r *Registry) Get(ctx context.Context, key string) (ha.KV, error) {
	resp, err := r.get(ctx, key)
	if err != nil {
		return ha.KV{}, err
	}
	if len(resp.Kvs) == 0 {
		return ha.KV{}, fmt.Errorf("%w: %q", ha.ErrNotFound, key)
	}
	return r.kv(resp.Kvs[0]), nil
}

func (r *Registry) get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	var resp clientv3.OpResponse
	err := r.call(ctx, ha.ErrUnavailable, func(ctx context.Context) (err error) {
		resp, err = r.client.Do(ctx, clientv3.OpGet(r.prefix+key, opts...))
		return err
	})
	if err != nil {
		return nil, err
	}
	return resp.Get(), nil
}

// listPage is how many keys are read by one request.
const listPage = 128

// List reads page by page, all as of the first page's revision. If that is compacted
// away meanwhile, it begins anew.
func (r *Registry) List(ctx context.Context, prefix string) ([]ha.KV, ha.Revision, error) {
	if err := ha.CheckPrefix(prefix); err != nil {
		return nil, 0, err
	}
	end := clientv3.GetPrefixRangeEnd(r.prefix + prefix)
	for {
		kvs, rev, err := r.listOnce(ctx, prefix, end)
		if !isCompacted(err) || ctx.Err() != nil {
			return kvs, rev, err
		}
	}
}

func (r *Registry) listOnce(ctx context.Context, prefix, end string) ([]ha.KV, ha.Revision, error) {
	var kvs []ha.KV
	var rev int64
	for from := prefix; ; {
		opts := []clientv3.OpOption{clientv3.WithRange(end), clientv3.WithLimit(listPage)}
		if rev != 0 {
			opts = append(opts, clientv3.WithRev(rev))
		}
		resp, err := r.get(ctx, from, opts...)
		if err != nil {
			return nil, 0, err
		}
		if rev == 0 {
			rev = resp.Header.Revision
		}
		for _, kv := range resp.Kvs {
			kvs = append(kvs, r.kv(kv))
		}
		if !resp.More || len(resp.Kvs) == 0 {
			return kvs, ha.Revision(rev), nil
		}
		from = kvs[len(kvs)-1].Key + "\x00"
	}
}

// Txn applies all ops or none.
func (r *Registry) Txn(ctx context.Context, guard weir.LeaderEpoch, ops ...ha.Op) (ha.Revision, error) {
	if err := ha.CheckTxn(ops); err != nil {
		return 0, err
	}
	if guard == 0 {
		return 0, ha.ErrNotLeader // a create revision of 0 would mean that nobody leads
	}
	var resp clientv3.OpResponse
	err := r.call(ctx, ha.ErrDoubtful, func(ctx context.Context) (err error) {
		resp, err = r.client.Do(ctx, r.guarded(guard, ops))
		return err
	})
	if err != nil {
		return 0, err
	}
	txn := resp.Txn()
	if txn.Succeeded {
		return ha.Revision(txn.Header.Revision), nil
	}
	err = r.refusal(txn, guard, ops)
	if errors.Is(err, ha.ErrNotLeader) {
		r.refused(guard)
	}
	return 0, err
}

// guarded is the transaction: if the election key has the guard's create revision and
// each key its expected one, the writes; else what is there instead.
func (r *Registry) guarded(guard weir.LeaderEpoch, ops []ha.Op) clientv3.Op {
	leader := r.prefix + ha.LeaderKey
	conditions := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(leader), "=", int64(guard))}
	var writes []clientv3.Op
	reads := []clientv3.Op{clientv3.OpGet(leader)}
	for _, op := range ops {
		key := r.prefix + op.Key
		conditions = append(conditions, clientv3.Compare(clientv3.ModRevision(key), "=", int64(op.Expect)))
		reads = append(reads, clientv3.OpGet(key))
		switch op.Kind {
		case ha.OpCheck:
		case ha.OpPut:
			writes = append(writes, clientv3.OpPut(key, string(op.Value)))
		case ha.OpDelete:
			writes = append(writes, clientv3.OpDelete(key))
		}
	}
	return clientv3.OpTxn(conditions, writes, reads)
}

// refusal finds out why a transaction was not applied.
func (r *Registry) refusal(txn *clientv3.TxnResponse, guard weir.LeaderEpoch, ops []ha.Op) error {
	if len(txn.Responses) != len(ops)+1 {
		return fmt.Errorf("%w: %d responses to %d reads", ha.ErrDoubtful, len(txn.Responses), len(ops)+1)
	}
	leader := txn.Responses[0].GetResponseRange()
	if len(leader.Kvs) == 0 || weir.LeaderEpoch(leader.Kvs[0].CreateRevision) != guard {
		return ha.ErrNotLeader
	}
	for i, op := range ops {
		there := txn.Responses[i+1].GetResponseRange().Kvs
		switch {
		case len(there) == 0 && op.Expect != 0:
			return &ha.ConflictError{Key: op.Key, Want: op.Expect}
		case len(there) > 0 && ha.Revision(there[0].ModRevision) != op.Expect:
			actual := r.kv(there[0])
			return &ha.ConflictError{Key: op.Key, Want: op.Expect, Actual: &actual}
		}
	}
	return fmt.Errorf("%w: refused although all conditions hold", ha.ErrDoubtful)
}

// refused ends our leadership, if it is the one that a write was refused for.
func (r *Registry) refused(guard weir.LeaderEpoch) {
	r.mu.Lock()
	l := r.mu.leading
	r.mu.Unlock()
	if l != nil && l.epoch == guard {
		l.end(ha.ErrNotLeader)
	}
}
