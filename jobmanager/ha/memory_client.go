package ha

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weirflow/weir"
)

// MemoryClient is one process's connection to a [Memory]. It is a [Registry].
type MemoryClient struct {
	mem  *Memory
	name string
	hook Hook
	mu   struct {
		sync.Mutex
		ended   error             // why nothing works any more
		leading *memoryLeadership // the last one that was won
		cancels map[*memoryCall]context.CancelCauseFunc
	}
}

type memoryCall struct{ _ byte }

var _ Registry = (*MemoryClient)(nil)

// errKilled ends the calls of a killed client.
var errKilled = fmt.Errorf("%w: process was killed", ErrClosed)

// Connect returns a client. The name is for hooks.
func (m *Memory) Connect(name string, hook Hook) *MemoryClient {
	c := &MemoryClient{mem: m, name: name, hook: hook}
	c.mu.cancels = make(map[*memoryCall]context.CancelCauseFunc)
	return c
}

// Kill cuts the connection, as the end of the process does: every call from now on
// fails, blocked ones too, and a leadership ends when its lease runs out.
func (c *MemoryClient) Kill() {
	if !c.end(errKilled) {
		return
	}
	m := c.mem
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.mu.leader; l != nil && l.client == c {
		l.deadline = time.Now().Add(m.ttl)
		l.end(errKilled)
		m.wakeLocked()
	}
}

// Close resigns and ends the connection.
func (c *MemoryClient) Close() error {
	if !c.end(ErrClosed) {
		return nil
	}
	m := c.mem
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.mu.leader; l != nil && l.client == c {
		m.setLeaderLocked(nil)
		l.end(ErrClosed)
	}
	return nil
}

// end ends all calls, and says whether it was the first to.
func (c *MemoryClient) end(cause error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.ended != nil {
		return false
	}
	c.mu.ended = cause
	for _, cancel := range c.mu.cancels {
		cancel(cause)
	}
	return true
}

// do is the one path of all calls. An error of the hook, and the end of ctx or of
// the client, become noAnswer.
func (c *MemoryClient) do(ctx context.Context, call Call, noAnswer error, effect func(context.Context) error) error {
	call.Client = c.name
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	leave, err := c.enter(cancel, noAnswer)
	if err != nil {
		return err
	}
	defer leave()
	ask := func(half func(context.Context, Call) error) error {
		var err error
		if half != nil {
			err = half(ctx, call)
		}
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		if err != nil {
			return fmt.Errorf("%s: %w: %w", call.Method, noAnswer, err)
		}
		return nil
	}
	if err := ask(c.hook.Before); err != nil {
		return err
	}
	if err := effect(ctx); err != nil {
		return err
	}
	return ask(c.hook.After)
}

// enter registers a call, so that the client's end cancels it, until leave is called.
func (c *MemoryClient) enter(cancel context.CancelCauseFunc, noAnswer error) (leave func(), err error) {
	call := new(memoryCall)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.ended != nil {
		return nil, fmt.Errorf("%w: %w", noAnswer, c.mu.ended)
	}
	c.mu.cancels[call] = cancel
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.mu.cancels, call)
	}, nil
}

// Campaign waits for the present leader's end.
func (c *MemoryClient) Campaign(ctx context.Context, cand Candidate) (Leadership, error) {
	var won *memoryLeadership
	err := c.do(ctx, Call{Method: "campaign", Keys: []string{LeaderKey}}, ErrUnavailable, func(ctx context.Context) error {
		for {
			l, changed, lease := c.mem.campaign(c, cand)
			if l != nil {
				won = l
				return nil
			}
			if err := waitChange(ctx, changed, lease); err != nil {
				return fmt.Errorf("campaign: %w: %w", ErrUnavailable, err)
			}
		}
	})
	if err != nil {
		c.mem.abandon(won)
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.leading = won
	return won, nil
}

// waitChange waits for changed, for at most lease if that is not 0.
func waitChange(ctx context.Context, changed <-chan struct{}, lease time.Duration) error {
	var expired <-chan time.Time
	if lease > 0 {
		t := time.NewTimer(lease)
		defer t.Stop()
		expired = t.C
	}
	select {
	case <-changed:
	case <-expired:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// Leader says who leads.
func (c *MemoryClient) Leader(ctx context.Context) (l Leader, err error) {
	err = c.do(ctx, Call{Method: "leader", Keys: []string{LeaderKey}}, ErrUnavailable, func(context.Context) (err error) {
		l, err = c.mem.leader()
		return err
	})
	return l, err
}

// Get reads one key.
func (c *MemoryClient) Get(ctx context.Context, key string) (kv KV, err error) {
	err = c.do(ctx, Call{Method: "get", Keys: []string{key}}, ErrUnavailable, func(context.Context) (err error) {
		kv, err = c.mem.get(key)
		return err
	})
	if err != nil {
		return KV{}, err
	}
	return kv, nil
}

// List reads all keys with the prefix.
func (c *MemoryClient) List(ctx context.Context, prefix string) (kvs []KV, rev Revision, err error) {
	if err := CheckPrefix(prefix); err != nil {
		return nil, 0, err
	}
	err = c.do(ctx, Call{Method: "list", Keys: []string{prefix}}, ErrUnavailable, func(context.Context) error {
		kvs, rev = c.mem.list(prefix)
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	return kvs, rev, nil
}

// Txn applies all ops or none.
func (c *MemoryClient) Txn(ctx context.Context, guard weir.LeaderEpoch, ops ...Op) (rev Revision, err error) {
	if err := CheckTxn(ops); err != nil {
		return 0, err
	}
	keys := make([]string, len(ops))
	for i, op := range ops {
		keys[i] = op.Key
	}
	err = c.do(ctx, Call{Method: "txn", Keys: keys}, ErrDoubtful, func(context.Context) (err error) {
		rev, err = c.mem.txn(guard, ops)
		return err
	})
	if errors.Is(err, ErrNotLeader) {
		c.refused(guard)
	}
	if err != nil {
		return 0, err
	}
	return rev, nil
}

// refused ends our leadership, if it is the one that a write was refused for: it was
// overtaken without our knowing.
func (c *MemoryClient) refused(guard weir.LeaderEpoch) {
	c.mu.Lock()
	l := c.mu.leading
	c.mu.Unlock()
	if l != nil && l.epoch == guard {
		l.end(ErrNotLeader)
	}
}

// Notice lets the client learn that a leadership of it is over that it lost without
// being told (see [Memory.OvertakeLeader]), as a process does that wakes from a pause
// and finds its lease gone. It does nothing while the client leads.
func (c *MemoryClient) Notice() {
	c.mu.Lock()
	l := c.mu.leading
	c.mu.Unlock()
	c.mem.mu.Lock()
	defer c.mem.mu.Unlock()
	if l != nil && c.mem.mu.leader != l {
		l.end(fmt.Errorf("%w: lease expired", ErrNotLeader))
	}
}

// memoryLeadership is a won election of a [Memory].
type memoryLeadership struct {
	client    *MemoryClient
	candidate Candidate
	epoch     weir.LeaderEpoch
	deadline  time.Time // of the lease of a dead client, else zero; guarded by the Memory's lock
	lost      chan struct{}
	mu        struct {
		sync.Mutex
		err error // why lost is closed
	}
}

// end closes lost, once.
func (l *memoryLeadership) end(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.err == nil {
		l.mu.err = cause
		close(l.lost)
	}
}

func (l *memoryLeadership) Epoch() weir.LeaderEpoch { return l.epoch }
func (l *memoryLeadership) Lost() <-chan struct{}   { return l.lost }

func (l *memoryLeadership) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.err
}

// Resign deletes the election key.
func (l *memoryLeadership) Resign(ctx context.Context) error {
	defer l.end(fmt.Errorf("%w: resigned", ErrNotLeader))
	return l.client.do(ctx, Call{Method: "resign", Keys: []string{LeaderKey}}, ErrDoubtful, func(context.Context) error {
		m := l.client.mem
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.mu.leader == l {
			m.setLeaderLocked(nil)
		}
		return nil
	})
}
