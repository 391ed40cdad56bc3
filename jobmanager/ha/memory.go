package ha

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirflow/weir"
)

// Call describes a call on a [MemoryClient] to its [Hook].
type Call struct {
	Client string   // name given to Connect
	Method string   // "campaign", "leader", "get", "list", "txn", "resign"
	Keys   []string // that it reads or writes
}

// Hook interferes with the calls of one client of a [Memory]. Its functions may be
// nil. Both may block, which delays the call, until ctx ends.
type Hook struct {
	// Before is called before the call takes effect; after an error it does not, and
	// the caller hears nothing ([ErrDoubtful] or [ErrUnavailable]).
	Before func(ctx context.Context, c Call) error
	// After is called when it has taken effect; after an error the answer is lost.
	After func(ctx context.Context, c Call) error
}

// Memory is a registry in memory, shared by the clients that connect to it: the
// server's side. It starts no goroutine, and works in testing/synctest bubbles.
type Memory struct {
	ttl time.Duration
	mu  struct {
		sync.Mutex
		revision Revision
		keys     map[string]KV
		leader   *memoryLeadership // nil: nobody
		changed  chan struct{}     // closed, and replaced, when leader changes or its client dies
	}
}

// NewMemory returns an empty registry. ttl is how long a killed leader is waited
// for; 0 means [DefaultLeaseTTL].
func NewMemory(ttl time.Duration) *Memory {
	if ttl <= 0 {
		ttl = DefaultLeaseTTL
	}
	m := &Memory{ttl: ttl}
	m.mu.revision = 1
	m.mu.keys = make(map[string]KV)
	m.mu.changed = make(chan struct{})
	return m
}

// ExpireLeader ends the present leadership, as if its lease had run out, and tells
// the leader.
func (m *Memory) ExpireLeader() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.mu.leader; l != nil {
		m.setLeaderLocked(nil)
		l.end(fmt.Errorf("%w: lease expired", ErrNotLeader))
	}
}

// OvertakeLeader ends the present leadership without telling the leader, as if its
// process were paused: it learns of it by its next guarded write.
func (m *Memory) OvertakeLeader() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.setLeaderLocked(nil)
}

// setLeaderLocked changes who leads, in a revision of its own.
func (m *Memory) setLeaderLocked(l *memoryLeadership) {
	if m.mu.leader == nil && l == nil {
		return
	}
	m.mu.revision++
	m.mu.leader = l
	if l != nil {
		l.epoch = weir.LeaderEpoch(m.mu.revision)
	}
	m.wakeLocked()
}

func (m *Memory) wakeLocked() {
	close(m.mu.changed)
	m.mu.changed = make(chan struct{})
}

// expireLocked ends the leadership of a dead client whose lease has run out.
func (m *Memory) expireLocked(now time.Time) {
	if l := m.mu.leader; l != nil && !l.deadline.IsZero() && !now.Before(l.deadline) {
		m.setLeaderLocked(nil)
	}
}

// campaign makes c the leader, or returns what to wait for: a change, and at the
// latest the end of a dead leader's lease (0: there is none).
func (m *Memory) campaign(client *MemoryClient, c Candidate) (l *memoryLeadership, changed <-chan struct{}, lease time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.expireLocked(now)
	if old := m.mu.leader; old != nil {
		if !old.deadline.IsZero() {
			lease = old.deadline.Sub(now)
		}
		return nil, m.mu.changed, lease
	}
	l = &memoryLeadership{client: client, candidate: c, lost: make(chan struct{})}
	m.setLeaderLocked(l)
	return l, nil, 0
}

// abandon ends a leadership whose winner has not heard of it; nil is none.
func (m *Memory) abandon(l *memoryLeadership) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l != nil && m.mu.leader == l {
		m.setLeaderLocked(nil)
	}
}

func (m *Memory) leader() (Leader, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expireLocked(time.Now())
	if m.mu.leader == nil {
		return Leader{}, ErrNoLeader
	}
	return Leader{Candidate: m.mu.leader.candidate, Epoch: m.mu.leader.epoch}, nil
}

func (m *Memory) get(key string) (KV, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	kv, ok := m.mu.keys[key]
	if !ok {
		return KV{}, fmt.Errorf("%w: %q", ErrNotFound, key)
	}
	return cloneKV(kv), nil
}

func (m *Memory) list(prefix string) ([]KV, Revision) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var kvs []KV
	for key, kv := range m.mu.keys {
		if strings.HasPrefix(key, prefix) {
			kvs = append(kvs, cloneKV(kv))
		}
	}
	slices.SortFunc(kvs, func(a, b KV) int { return strings.Compare(a.Key, b.Key) })
	return kvs, m.mu.revision
}

func (m *Memory) txn(guard weir.LeaderEpoch, ops []Op) (Revision, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expireLocked(time.Now())
	if m.mu.leader == nil || m.mu.leader.epoch != guard {
		return 0, ErrNotLeader
	}
	for _, op := range ops {
		if kv, ok := m.mu.keys[op.Key]; kv.ModRevision != op.Expect {
			conflict := &ConflictError{Key: op.Key, Want: op.Expect}
			if ok {
				actual := cloneKV(kv)
				conflict.Actual = &actual
			}
			return 0, conflict
		}
	}
	m.mu.revision++
	for _, op := range ops {
		switch op.Kind {
		case OpCheck:
		case OpPut:
			kv := KV{Key: op.Key, Value: slices.Clone(op.Value), CreateRevision: m.mu.revision, ModRevision: m.mu.revision}
			if op.Expect != 0 {
				kv.CreateRevision = m.mu.keys[op.Key].CreateRevision
			}
			m.mu.keys[op.Key] = kv
		case OpDelete:
			delete(m.mu.keys, op.Key)
		}
	}
	return m.mu.revision, nil
}

func cloneKV(kv KV) KV {
	kv.Value = slices.Clone(kv.Value)
	return kv
}
