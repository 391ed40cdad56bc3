package etcd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobmanager/ha"
)

// candidate is the election key's value.
type candidate struct {
	ID      string `json:"id"`
	Address string `json:"address"`
}

// Pauses of a campaign.
const (
	retryPause = 200 * time.Millisecond // after a request without an answer
	reread     = 5 * time.Second        // how long a watch is believed to be alive
)

// Campaign waits until the election key is absent, and creates it with a lease.
func (r *Registry) Campaign(ctx context.Context, c ha.Candidate) (ha.Leadership, error) {
	ctx, done, err := r.enter(ctx, ha.ErrUnavailable)
	if err != nil {
		return nil, err
	}
	defer done()
	sole := r.o.Sole
	for {
		l, err := r.tryLead(ctx, c, sole)
		if l != nil {
			return l, nil
		}
		if err != nil && ctx.Err() == nil {
			r.o.Logger.Warn("campaign for leadership: no answer, trying again", zap.Error(err))
			pause(ctx, retryPause)
		} else if err == nil {
			sole = false // what leads from now on is not a former process
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("campaign: %w", withMeaning(ctx, ha.ErrUnavailable, ctx.Err()))
		}
	}
}

// tryLead leads, or waits until it may be worth another try.
func (r *Registry) tryLead(ctx context.Context, c ha.Candidate, sole bool) (*leadership, error) {
	resp, err := r.get(ctx, ha.LeaderKey)
	if err != nil {
		return nil, err
	}
	if len(resp.Kvs) == 0 {
		return r.create(ctx, c)
	}
	if former := clientv3.LeaseID(resp.Kvs[0].Lease); sole {
		r.o.Logger.Info("revoking the lease of an earlier process", zap.ByteString("leader", resp.Kvs[0].Value))
		return nil, r.revoke(ctx, former)
	}
	r.awaitChange(ctx, resp.Header.Revision)
	return nil, nil
}

// awaitChange returns when the election key may have changed since the revision.
func (r *Registry) awaitChange(ctx context.Context, since int64) {
	ctx, cancel := context.WithTimeout(ctx, reread)
	defer cancel()
	watch := r.client.Watch(clientv3.WithRequireLeader(ctx), r.prefix+ha.LeaderKey, clientv3.WithRev(since+1))
	select {
	case resp, ok := <-watch: // whatever it says, it means to read again
		if !ok || resp.Err() != nil {
			pause(ctx, retryPause)
		}
	case <-ctx.Done():
	}
}

// create grants a lease and creates the key with it. Whatever does not succeed is
// taken back, by revoking the lease.
func (r *Registry) create(ctx context.Context, c ha.Candidate) (*leadership, error) {
	sent := time.Now()
	var lease clientv3.LeaseID
	err := r.call(ctx, ha.ErrUnavailable, func(ctx context.Context) error {
		resp, err := r.client.Grant(ctx, int64(r.o.LeaseTTL/time.Second))
		if err == nil {
			lease = resp.ID
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	value, err := json.Marshal(candidate(c))
	if err != nil {
		return nil, err
	}
	key := r.prefix + ha.LeaderKey
	var resp clientv3.OpResponse
	err = r.call(ctx, ha.ErrUnavailable, func(ctx context.Context) (err error) {
		resp, err = r.client.Do(ctx, clientv3.OpTxn(
			[]clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), "=", 0)},
			[]clientv3.Op{clientv3.OpPut(key, string(value), clientv3.WithLease(lease))}, nil))
		return err
	})
	if err == nil && resp.Txn().Succeeded {
		return r.lead(lease, weir.LeaderEpoch(resp.Txn().Header.Revision), sent)
	}
	if rerr := r.revoke(context.WithoutCancel(ctx), lease); rerr != nil {
		r.o.Logger.Warn("lease of a lost campaign was not revoked; it runs out", zap.Error(rerr))
	}
	return nil, err
}

// lead starts to keep the lease.
func (r *Registry) lead(lease clientv3.LeaseID, epoch weir.LeaderEpoch, sent time.Time) (*leadership, error) {
	l := &leadership{registry: r, lease: lease, epoch: epoch, lost: make(chan struct{})}
	r.mu.Lock()
	r.mu.leading = l
	r.mu.Unlock()
	err := r.group.Go("lease", func(ctx context.Context) error {
		l.keep(ctx, sent)
		return nil
	})
	if err != nil {
		l.end(ha.ErrClosed)
		return nil, ha.ErrClosed
	}
	return l, nil
}

// revoke ends a lease and deletes its keys. One that does not exist is no error.
func (r *Registry) revoke(ctx context.Context, lease clientv3.LeaseID) error {
	return r.call(ctx, ha.ErrUnavailable, func(ctx context.Context) error { return r.revokeNow(ctx, lease) })
}

func (r *Registry) revokeNow(ctx context.Context, lease clientv3.LeaseID) error {
	_, err := r.client.Revoke(ctx, lease)
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return nil
	}
	return err
}

// Leader reads the election key.
func (r *Registry) Leader(ctx context.Context) (ha.Leader, error) {
	resp, err := r.get(ctx, ha.LeaderKey)
	if err != nil {
		return ha.Leader{}, err
	}
	if len(resp.Kvs) == 0 {
		return ha.Leader{}, ha.ErrNoLeader
	}
	var c candidate
	d := json.NewDecoder(bytes.NewReader(resp.Kvs[0].Value))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return ha.Leader{}, fmt.Errorf("%w: election key: %w", ha.ErrCorrupt, err)
	}
	return ha.Leader{Candidate: ha.Candidate(c), Epoch: weir.LeaderEpoch(resp.Kvs[0].CreateRevision)}, nil
}

// leadership is a won election.
type leadership struct {
	registry *Registry
	lease    clientv3.LeaseID
	epoch    weir.LeaderEpoch
	lost     chan struct{}
	mu       struct {
		sync.Mutex
		err  error // why lost is closed
		gone bool  // the lease is known not to exist any more
	}
}

var _ ha.Leadership = (*leadership)(nil)

func (l *leadership) Epoch() weir.LeaderEpoch { return l.epoch }
func (l *leadership) Lost() <-chan struct{}   { return l.lost }

func (l *leadership) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.err
}

// end closes lost, once.
func (l *leadership) end(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.err == nil {
		l.mu.err = cause
		close(l.lost)
	}
}

// keep prolongs the lease until it ends. The server counts the lease from when it
// hears a request, so until a lease's time after we sent the last one that was
// answered, nobody else can lead; we stop a sixth earlier.
func (l *leadership) keep(ctx context.Context, sent time.Time) {
	ttl := l.registry.o.LeaseTTL
	next := ttl / 3
	for {
		deadline := sent.Add(ttl - ttl/6)
		if !l.sleep(ctx, min(next, time.Until(deadline))) {
			return
		}
		now := time.Now()
		if !now.Before(deadline) {
			l.end(fmt.Errorf("%w: the lease could not be prolonged for %v", ha.ErrNotLeader, now.Sub(sent)))
			return
		}
		switch err := l.prolong(ctx, deadline); {
		case err == nil:
			sent, next = now, ttl/3
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			l.forget()
			l.end(fmt.Errorf("%w: the lease is gone", ha.ErrNotLeader))
			return
		default:
			next = ttl / 12
			l.registry.o.Logger.Warn("leader's lease was not prolonged, trying again", zap.Error(err), zap.Time("until", deadline))
		}
	}
}

// prolong makes one request, for which it takes a third of the lease's time at most.
func (l *leadership) prolong(ctx context.Context, deadline time.Time) error {
	if third := time.Now().Add(l.registry.o.LeaseTTL / 3); third.Before(deadline) {
		deadline = third
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	_, err := l.registry.client.KeepAliveOnce(ctx, l.lease)
	return err
}

// sleep returns false when there is nothing to keep any more.
func (l *leadership) sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-l.lost:
		return false
	case <-ctx.Done():
		l.end(ha.ErrClosed)
		return false
	}
}

// forget notes that there is no lease any more.
func (l *leadership) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.gone = true
}

func (l *leadership) gone() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.gone
}

// Resign revokes the lease, unless that was done: etcd warns of a revocation of nothing.
func (l *leadership) Resign(ctx context.Context) error {
	return l.resign(ctx, fmt.Errorf("%w: resigned", ha.ErrNotLeader))
}

func (l *leadership) resign(ctx context.Context, cause error) error {
	l.end(cause)
	if l.gone() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.registry.o.CallTimeout)
	defer cancel()
	if err := l.registry.revokeNow(ctx, l.lease); err != nil {
		return fmt.Errorf("resign: %w: %w", ha.ErrDoubtful, err)
	}
	l.forget()
	return nil
}

// pause waits, or returns earlier at ctx's end.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// kv turns etcd's form into ours.
func (r *Registry) kv(kv *mvccpb.KeyValue) ha.KV {
	return ha.KV{
		Key: strings.TrimPrefix(string(kv.Key), r.prefix), Value: kv.Value,
		CreateRevision: ha.Revision(kv.CreateRevision), ModRevision: ha.Revision(kv.ModRevision),
	}
}

func isCompacted(err error) bool { return errors.Is(err, rpctypes.ErrCompacted) }
