package ha_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/jobmanager/ha/hatest"
)

// memorySystem is a Memory for the suite.
type memorySystem struct {
	mem *ha.Memory
	mu  struct {
		sync.Mutex
		drop, lose map[string]bool // clients whose next transaction goes wrong
	}
	names map[ha.Registry]string
}

func newMemorySystem(testing.TB) hatest.System {
	s := &memorySystem{mem: ha.NewMemory(0), names: make(map[ha.Registry]string)}
	s.mu.drop, s.mu.lose = make(map[string]bool), make(map[string]bool)
	return s
}

// take answers whether the client's next transaction was to go wrong, once.
func (s *memorySystem) take(faults map[string]bool, c ha.Call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Method != "txn" || !faults[c.Client] {
		return nil
	}
	delete(faults, c.Client)
	return errors.New("no answer")
}

func (s *memorySystem) Connect(t testing.TB, name string) ha.Registry {
	c := s.mem.Connect(name, ha.Hook{
		Before: func(_ context.Context, c ha.Call) error { return s.take(s.mu.drop, c) },
		After:  func(_ context.Context, c ha.Call) error { return s.take(s.mu.lose, c) },
	})
	s.names[c] = name
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func (s *memorySystem) Kill(c ha.Registry)     { c.(*ha.MemoryClient).Kill() }
func (s *memorySystem) Overtake(testing.TB)    { s.mem.OvertakeLeader() }
func (s *memorySystem) DropNext(c ha.Registry) { s.fault(s.mu.drop, c) }
func (s *memorySystem) LoseNext(c ha.Registry) { s.fault(s.mu.lose, c) }

func (s *memorySystem) fault(faults map[string]bool, c ha.Registry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	faults[s.names[c]] = true
}

func TestMemoryContract(t *testing.T) {
	hatest.Run(t, newMemorySystem, func(t *testing.T, test func(t *testing.T)) { synctest.Test(t, test) })
}

func TestKilledLeaderIsWaitedForAsLongAsItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := ha.NewMemory(5 * time.Second)
		first := mem.Connect("first", ha.Hook{})
		if _, err := first.Campaign(t.Context(), ha.Candidate{ID: "first"}); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		first.Kill()
		second := mem.Connect("second", ha.Hook{})
		if _, err := second.Campaign(t.Context(), ha.Candidate{ID: "second"}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("waited %v", took)
		}
	})
}

func TestKillEndsCallsBlockedInTheHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := ha.NewMemory(0)
		hang := func(ctx context.Context, c ha.Call) error {
			if c.Method == "txn" {
				<-ctx.Done()
			}
			return nil
		}
		c := mem.Connect("jm", ha.Hook{Before: hang})
		l, err := c.Campaign(t.Context(), ha.Candidate{ID: "jm"})
		if err != nil {
			t.Fatal(err)
		}
		g := group.New(t.Context(), "g")
		var txnErr error
		if err := g.Go("txn", func(ctx context.Context) error {
			_, txnErr = c.Txn(ctx, l.Epoch(), ha.Create("k", nil))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		c.Kill()
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		if !errors.Is(txnErr, ha.ErrDoubtful) {
			t.Errorf("Txn: %v", txnErr)
		}
		if _, err := mem.Connect("other", ha.Hook{}).Get(t.Context(), "k"); !errors.Is(err, ha.ErrNotFound) {
			t.Errorf("the blocked write took effect: %v", err)
		}
	})
}

func TestCampaignWhoseAnswerIsLostLeavesNoLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := ha.NewMemory(0)
		c := mem.Connect("jm", ha.Hook{After: func(_ context.Context, c ha.Call) error { return errors.New("lost") }})
		if _, err := c.Campaign(t.Context(), ha.Candidate{ID: "jm"}); !errors.Is(err, ha.ErrUnavailable) {
			t.Fatalf("Campaign: %v", err)
		}
		if _, err := mem.Connect("other", ha.Hook{}).Campaign(t.Context(), ha.Candidate{ID: "other"}); err != nil {
			t.Fatal(err)
		}
	})
}

func TestExpiredLeaderIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := ha.NewMemory(0)
		mem.ExpireLeader() // nobody leads
		c := mem.Connect("jm", ha.Hook{})
		l, err := c.Campaign(t.Context(), ha.Candidate{ID: "jm"})
		if err != nil {
			t.Fatal(err)
		}
		mem.ExpireLeader()
		<-l.Lost()
		if !errors.Is(l.Err(), ha.ErrNotLeader) {
			t.Errorf("Err: %v", l.Err())
		}
		if _, err := c.Txn(t.Context(), l.Epoch(), ha.Create("k", nil)); !errors.Is(err, ha.ErrNotLeader) {
			t.Errorf("Txn: %v", err)
		}
	})
}
