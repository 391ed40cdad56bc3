package ha

import (
	"context"
	"time"
)

// Call describes a call on a [Memory] to a [Hook].
type Call struct {
	Client string   // name given to Connect
	Method string   // "campaign", "leader", "get", "list", "txn", "resign"
	Keys   []string // that it reads or writes
}

// Hook interferes with the calls of one client of a [Memory]. Both functions may
// block, which delays the call, until ctx ends.
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
}

// NewMemory returns an empty registry. ttl is how long a killed leader is waited
// for; 0 means [DefaultLeaseTTL].
func NewMemory(ttl time.Duration) *Memory { return &Memory{ttl: ttl} }

// Connect returns a client. The name is for hooks.
func (m *Memory) Connect(name string, hook Hook) *MemoryClient {
	return &MemoryClient{mem: m, name: name, hook: hook}
}

// ExpireLeader ends the present leadership, as if its lease had run out, and tells
// the leader.
func (m *Memory) ExpireLeader() {}

// OvertakeLeader ends the present leadership without telling the leader, as if its
// process were paused: it learns of it by its next guarded write.
func (m *Memory) OvertakeLeader() {}

// MemoryClient is one process's connection to a [Memory]. It is a [Registry].
type MemoryClient struct {
	mem  *Memory
	name string
	hook Hook
}

// Kill cuts the connection, as the end of the process does: every call from now on
// fails, blocked ones too, and a leadership ends when its lease runs out.
func (c *MemoryClient) Kill() {}
