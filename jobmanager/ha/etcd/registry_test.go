package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/jobmanager/ha/etcd"
	"github.com/weirflow/weir/jobmanager/ha/etcdserver"
	"github.com/weirflow/weir/jobmanager/ha/hatest"
)

func startServer(t *testing.T, dir string) *etcdserver.Server {
	t.Helper()
	s, err := etcdserver.Start(t.Context(), etcdserver.Options{Dir: dir, Sync: etcdserver.Unsynced})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopServer(t, s) })
	return s
}

func stopServer(t *testing.T, s *etcdserver.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
}

// system is an etcd for the suite; every system is a cluster of its own in it.
type system struct {
	server  *etcdserver.Server
	cluster string
	faults  map[ha.Registry]*faultyKV
}

// faultyKV loses requests or answers of transactions.
type faultyKV struct {
	clientv3.KV
	mu struct {
		sync.Mutex
		drop, lose bool // the next one
	}
}

func (f *faultyKV) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	var drop, lose bool
	if op.IsTxn() {
		f.mu.Lock()
		drop, lose = f.mu.drop, f.mu.lose
		f.mu.drop, f.mu.lose = false, false
		f.mu.Unlock()
	}
	if drop {
		return clientv3.OpResponse{}, errors.New("no answer")
	}
	resp, err := f.KV.Do(ctx, op)
	if lose && err == nil {
		return clientv3.OpResponse{}, errors.New("no answer")
	}
	return resp, err
}

func (s *system) Connect(t testing.TB, _ string) ha.Registry {
	client := s.server.Client()
	kv := &faultyKV{KV: client.KV}
	client.KV = kv
	r, err := etcd.New(client, etcd.Options{Cluster: s.cluster, LeaseTTL: leaseTTL})
	if err != nil {
		t.Fatal(err)
	}
	s.faults[r] = kv
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (s *system) Kill(c ha.Registry) {
	if err := c.(*etcd.Registry).Kill(); err != nil {
		panic(err)
	}
}

func (s *system) Overtake(t testing.TB) {
	client := s.server.Client()
	defer client.Close()
	resp, err := client.Get(t.Context(), "/weir/"+s.cluster+"/"+ha.LeaderKey)
	if err != nil || len(resp.Kvs) != 1 {
		t.Fatalf("leader: %+v, %v", resp, err)
	}
	if _, err := client.Revoke(t.Context(), clientv3.LeaseID(resp.Kvs[0].Lease)); err != nil {
		t.Fatal(err)
	}
}

func (s *system) DropNext(c ha.Registry) {
	f := s.faults[c]
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.drop = true
}

func (s *system) LoseNext(c ha.Registry) {
	f := s.faults[c]
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.lose = true
}

func TestContract(t *testing.T) {
	server := startServer(t, t.TempDir())
	clusters := 0
	open := func(testing.TB) hatest.System {
		clusters++
		return &system{server: server, cluster: fmt.Sprint("c", clusters), faults: make(map[ha.Registry]*faultyKV)}
	}
	hatest.Run(t, open, func(t *testing.T, test func(t *testing.T)) { test(t) })
}

func connect(t *testing.T, s *etcdserver.Server, o etcd.Options) *etcd.Registry {
	t.Helper()
	o.Cluster = "c"
	r, err := etcd.New(s.Client(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func TestRestartedSoleJobManagerDoesNotWaitForItsOwnLease(t *testing.T) {
	dir := t.TempDir()
	o := etcd.Options{LeaseTTL: time.Hour, Sole: true}
	server := startServer(t, dir)
	first := connect(t, server, o)
	l1, err := first.Campaign(t.Context(), ha.Candidate{ID: "jm", Address: "a:1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	stopServer(t, server)

	server = startServer(t, dir)
	second := connect(t, server, o)
	if who, err := second.Leader(t.Context()); err != nil || who.Epoch != l1.Epoch() {
		t.Fatalf("Leader after the restart: %+v, %v", who, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	l2, err := second.Campaign(ctx, ha.Candidate{ID: "jm", Address: "a:2"})
	if err != nil || l2.Epoch() <= l1.Epoch() {
		t.Fatalf("Campaign: %v", err)
	}
	if _, err := second.Txn(ctx, l1.Epoch(), ha.Create("k", nil)); !errors.Is(err, ha.ErrNotLeader) {
		t.Errorf("write in the old epoch: %v", err)
	}
}

func TestLeaderThatCannotReachEtcdStepsDown(t *testing.T) {
	server := startServer(t, t.TempDir())
	r := connect(t, server, etcd.Options{LeaseTTL: time.Second, CallTimeout: time.Second})
	l, err := r.Campaign(t.Context(), ha.Candidate{ID: "jm"})
	if err != nil {
		t.Fatal(err)
	}
	stopServer(t, server)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	select {
	case <-l.Lost():
	case <-ctx.Done():
		t.Fatal("leadership was not given up")
	}
	if !errors.Is(l.Err(), ha.ErrNotLeader) {
		t.Errorf("Err: %v", l.Err())
	}
	if _, err := r.Txn(ctx, l.Epoch(), ha.Create("k", nil)); !errors.Is(err, ha.ErrDoubtful) {
		t.Errorf("Txn: %v", err)
	}
}

// leaseTTL is for leases that are to be kept: a busy machine may keep this process from
// running for a second, and whoever cannot prolong a lease of one second has lost it.
const leaseTTL = 4 * time.Second

func TestLeaseIsKeptWhileTheLeaderLives(t *testing.T) {
	server := startServer(t, t.TempDir())
	r := connect(t, server, etcd.Options{LeaseTTL: leaseTTL})
	l, err := r.Campaign(t.Context(), ha.Candidate{ID: "jm"})
	if err != nil {
		t.Fatal(err)
	}
	// Another candidate waits for two leases in vain.
	ctx, cancel := context.WithTimeout(t.Context(), 2*leaseTTL)
	defer cancel()
	other := connect(t, server, etcd.Options{LeaseTTL: leaseTTL})
	if _, err := other.Campaign(ctx, ha.Candidate{ID: "other"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Campaign: %v", err)
	}
	if l.Err() != nil {
		t.Errorf("lost: %v", l.Err())
	}
}

func TestBadOptionsAreRefused(t *testing.T) {
	server := startServer(t, t.TempDir())
	for _, o := range []etcd.Options{{}, {Cluster: "c", LeaseTTL: time.Millisecond}, {Cluster: "c", LeaseTTL: 1500 * time.Millisecond}} {
		client := server.Client()
		if _, err := etcd.New(client, o); err == nil {
			t.Errorf("%+v: want an error", o)
		}
		if err := client.Close(); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// A process that ends gives its lease back once: etcd warns of what it does not know.
func TestLeaseIsGivenBackOnce(t *testing.T) {
	core, logs := observer.New(zapcore.WarnLevel)
	server, err := etcdserver.Start(t.Context(), etcdserver.Options{Dir: t.TempDir(), Sync: etcdserver.Unsynced, Logger: zap.New(core)})
	if err != nil {
		t.Fatal(err)
	}
	defer stopServer(t, server)
	r, err := etcd.New(server.Client(), etcd.Options{Cluster: "once", LeaseTTL: time.Minute, Logger: zap.New(core)})
	if err != nil {
		t.Fatal(err)
	}
	l, err := r.Campaign(t.Context(), ha.Candidate{ID: "a", Address: "a:1"})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.Resign(t.Context()); err != nil {
			t.Errorf("resign: %v", err)
		}
	}
	if err := r.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if logs.FilterMessage("failed to apply request").Len() > 0 {
		t.Errorf("logged: %v", logs.All())
	}
}
