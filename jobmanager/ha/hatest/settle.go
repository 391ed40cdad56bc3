package hatest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobmanager/ha"
)

func weirEpoch(n uint64) weir.LeaderEpoch { return weir.LeaderEpoch(n) }

func settleLost(t *testing.T, s System) {
	c, l := lead(t, s, "jm")
	mustTxn(t, c, l.Epoch(), ha.Create("a", []byte("1")), ha.Create("b", []byte("1")))
	a, b := mustGet(t, c, "a"), mustGet(t, c, "b")
	ops := []ha.Op{ha.Update(a, []byte("2")), ha.Delete(b), ha.Create("c", []byte("2"))}
	s.LoseNext(c)
	_, err := c.Txn(ctxOf(t), l.Epoch(), ops...)
	wantIs(t, "Txn", err, ha.ErrDoubtful)
	applied := mustGet(t, c, "a").ModRevision

	mustTxn(t, c, l.Epoch(), ha.Delete(mustGet(t, c, "c")), ha.Create("b", []byte("1")))
	b = mustGet(t, c, "b")
	ops = []ha.Op{ha.Update(mustGet(t, c, "a"), []byte("3")), ha.Delete(b), ha.Create("c", []byte("3"))}
	s.LoseNext(c)
	rev, err := ha.Settle(ctxOf(t), c, l.Epoch(), ops...)
	if err != nil {
		t.Fatal(err)
	}
	if now := mustGet(t, c, "a"); now.ModRevision != rev || rev <= applied || string(now.Value) != "3" {
		t.Errorf("a = %+v, settled at %d", now, rev)
	}
}

func settleDropped(t *testing.T, s System) {
	c, l := lead(t, s, "jm")
	s.DropNext(c)
	_, err := c.Txn(ctxOf(t), l.Epoch(), ha.Create("a", nil))
	wantIs(t, "Txn", err, ha.ErrDoubtful)
	_, err = c.Get(ctxOf(t), "a")
	wantIs(t, "Get", err, ha.ErrNotFound)

	s.DropNext(c)
	rev, err := ha.Settle(ctxOf(t), c, l.Epoch(), ha.Create("a", []byte("v")))
	if err != nil {
		t.Fatal(err)
	}
	if kv := mustGet(t, c, "a"); kv.CreateRevision != rev || string(kv.Value) != "v" {
		t.Errorf("a = %+v, settled at %d", kv, rev)
	}
}

func settleLostOvertaken(t *testing.T, s System) {
	c, l := lead(t, s, "jm")
	s.LoseNext(c)
	_, err := c.Txn(ctxOf(t), l.Epoch(), ha.Create("a", []byte("ours")))
	wantIs(t, "Txn", err, ha.ErrDoubtful)
	s.Overtake(t)
	// The first answer is lost, the second says that we do not lead; only the key
	// tells that the write was made. The fault makes Settle's first try the lost one.
	s.DropNext(c)
	if _, err := ha.Settle(ctxOf(t), c, l.Epoch(), ha.Create("a", []byte("ours"))); err != nil {
		t.Errorf("Settle: %v", err)
	}
}

func settleDroppedOvertaken(t *testing.T, s System) {
	c, l := lead(t, s, "jm")
	s.Overtake(t)
	s.DropNext(c)
	_, err := ha.Settle(ctxOf(t), c, l.Epoch(), ha.Create("a", []byte("ours")))
	wantIs(t, "Settle", err, ha.ErrNotLeader)
	_, err = c.Get(ctxOf(t), "a")
	wantIs(t, "Get", err, ha.ErrNotFound)
}

func settleConflict(t *testing.T, s System) {
	c, l := lead(t, s, "jm")
	mustTxn(t, c, l.Epoch(), ha.Create("a", []byte("theirs")))
	for _, fault := range []func(ha.Registry){func(ha.Registry) {}, s.DropNext, s.LoseNext} {
		fault(c)
		_, err := ha.Settle(ctxOf(t), c, l.Epoch(), ha.Create("a", []byte("ours")), ha.Create("b", nil))
		var conflict *ha.ConflictError
		if !errors.As(err, &conflict) || conflict.Key != "a" || string(conflict.Actual.Value) != "theirs" {
			t.Errorf("Settle: %v", err)
		}
	}
}

func settleEnds(t *testing.T, s System) {
	c, l := lead(t, s, "jm")
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	s.DropNext(c)
	_, err := ha.Settle(ctx, c, l.Epoch(), ha.Create("a", nil))
	wantIs(t, "Settle", err, ha.ErrDoubtful)
	wantIs(t, "Settle", err, context.DeadlineExceeded)
	s.Kill(c)
	_, err = ha.Settle(ctxOf(t), c, l.Epoch(), ha.Create("a", nil))
	wantIs(t, "Settle by a killed process", err, ha.ErrDoubtful)
	wantIs(t, "Settle by a killed process", err, ha.ErrClosed)
}
