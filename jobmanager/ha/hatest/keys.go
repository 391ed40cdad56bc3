package hatest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weirflow/weir/jobmanager/ha"
)

func writeReadList(t *testing.T, s System) {
	c, l := lead(t, s, "jm")
	other := s.Connect(t, "other")
	_, err := other.Get(ctxOf(t), "a/1")
	wantIs(t, "Get of an absent key", err, ha.ErrNotFound)

	r1 := mustTxn(t, c, l.Epoch(), ha.Create("a/1", []byte("one")), ha.Create("a/2", nil), ha.Create("b", []byte("x")), ha.Create("a0", nil))
	kv := mustGet(t, other, "a/1")
	if kv.Key != "a/1" || string(kv.Value) != "one" || kv.CreateRevision != r1 || kv.ModRevision != r1 {
		t.Fatalf("created: %+v, revision %d", kv, r1)
	}
	r2 := mustTxn(t, c, l.Epoch(), ha.Update(kv, []byte("two")))
	kv = mustGet(t, other, "a/1")
	if string(kv.Value) != "two" || kv.CreateRevision != r1 || kv.ModRevision != r2 || r2 <= r1 {
		t.Fatalf("updated: %+v, revisions %d, %d", kv, r1, r2)
	}
	kvs, rev, err := other.List(ctxOf(t), "a/")
	var keys []string
	for _, kv := range kvs {
		keys = append(keys, fmt.Sprintf("%s=%s", kv.Key, kv.Value))
	}
	if err != nil || !slices.Equal(keys, []string{"a/1=two", "a/2="}) || rev < r2 {
		t.Fatalf("List: %q at %d, %v", keys, rev, err)
	}
	mustTxn(t, c, l.Epoch(), ha.Delete(kv), ha.Unchanged(kvs[1]))
	_, err = c.Get(ctxOf(t), "a/1")
	wantIs(t, "Get of a deleted key", err, ha.ErrNotFound)
	r3 := mustTxn(t, c, l.Epoch(), ha.Create("a/1", nil))
	if kv := mustGet(t, c, "a/1"); kv.CreateRevision != r3 {
		t.Errorf("created anew: %+v, revision %d", kv, r3)
	}
	if kvs, _, err := c.List(ctxOf(t), "none/"); err != nil || len(kvs) != 0 {
		t.Errorf("List of nothing: %v, %v", kvs, err)
	}
}

func conflicts(t *testing.T, s System) {
	c, l := lead(t, s, "jm")
	mustTxn(t, c, l.Epoch(), ha.Create("k", []byte("v")))
	kv := mustGet(t, c, "k")
	stale := kv
	mustTxn(t, c, l.Epoch(), ha.Update(kv, []byte("w")))
	now := mustGet(t, c, "k")
	absent := ha.KV{Key: "absent", ModRevision: kv.ModRevision}
	for name, op := range map[string]ha.Op{
		"create":           ha.Create("k", []byte("x")),
		"stale update":     ha.Update(stale, []byte("x")),
		"stale delete":     ha.Delete(stale),
		"stale check":      ha.Unchanged(stale),
		"update of absent": ha.Update(absent, nil),
		"delete of absent": ha.Delete(absent),
		"check of absent":  ha.Unchanged(absent),
		"check for absent": {Kind: ha.OpCheck, Key: "k"},
	} {
		_, err := c.Txn(ctxOf(t), l.Epoch(), op)
		var conflict *ha.ConflictError
		if !errors.As(err, &conflict) || conflict.Key != op.Key || conflict.Want != op.Expect {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if op.Key == "absent" && conflict.Actual != nil ||
			op.Key == "k" && (conflict.Actual == nil || string(conflict.Actual.Value) != "w" || conflict.Actual.ModRevision != now.ModRevision) {
			t.Errorf("%s: actual %+v", name, conflict.Actual)
		}
	}
	mustTxn(t, c, l.Epoch(), ha.Op{Kind: ha.OpCheck, Key: "absent"}, ha.Create("k2", nil))
}

func allOrNothing(t *testing.T, s System) {
	c, l := lead(t, s, "jm")
	mustTxn(t, c, l.Epoch(), ha.Create("k", []byte("v")))
	before := mustGet(t, c, "k")
	_, err := c.Txn(ctxOf(t), l.Epoch(), ha.Create("new", nil), ha.Update(before, []byte("w")), ha.Create("k2", nil), ha.Op{Kind: ha.OpCheck, Key: "k3", Expect: before.ModRevision})
	var conflict *ha.ConflictError
	if !errors.As(err, &conflict) || conflict.Key != "k3" {
		t.Fatalf("Txn: %v", err)
	}
	if now := mustGet(t, c, "k"); now.ModRevision != before.ModRevision {
		t.Errorf("k was written: %+v", now)
	}
	if kvs, _, err := c.List(ctxOf(t), "new"); err != nil || len(kvs) != 0 {
		t.Errorf("new was written: %v, %v", kvs, err)
	}
}

func limits(t *testing.T, s System) {
	c, l := lead(t, s, "jm")
	many := make([]ha.Op, ha.MaxTxnOps+1)
	for i := range many {
		many[i] = ha.Create(fmt.Sprintf("k%d", i), nil)
	}
	for name, ops := range map[string][]ha.Op{
		"no ops": {}, "many ops": many, "no key": {ha.Create("", nil)},
		"long key":   {ha.Create(strings.Repeat("k", ha.MaxKeyLength+1), nil)},
		"long value": {ha.Create("k", make([]byte, ha.MaxValueLength+1))},
		"long values": {ha.Create("k0", make([]byte, ha.MaxValueLength)), ha.Create("k1", make([]byte, ha.MaxValueLength)),
			ha.Create("k2", make([]byte, ha.MaxValueLength)), ha.Create("k3", make([]byte, ha.MaxValueLength))},
	} {
		_, err := c.Txn(ctxOf(t), l.Epoch(), ops...)
		wantIs(t, name, err, ha.ErrTooLarge)
	}
	for name, ops := range map[string][]ha.Op{
		"key twice":      {ha.Create("k", nil), {Kind: ha.OpCheck, Key: "k"}},
		"election's key": {ha.Create(ha.LeaderKey, nil)},
	} {
		_, err := c.Txn(ctxOf(t), l.Epoch(), ops...)
		wantIs(t, name, err, ha.ErrBadKey)
	}
	_, _, err := c.List(ctxOf(t), "")
	wantIs(t, "List of everything", err, ha.ErrTooLarge)

	largest := make([]byte, ha.MaxValueLength)
	mustTxn(t, c, l.Epoch(), ha.Create(strings.Repeat("k", ha.MaxKeyLength), largest))
	mustTxn(t, c, l.Epoch(), many[:ha.MaxTxnOps]...)
	// More than one answer of an etcd may hold.
	for i := range 12 {
		mustTxn(t, c, l.Epoch(), ha.Create(fmt.Sprintf("large/%02d", i), largest))
	}
	kvs, _, err := c.List(ctxOf(t), "large/")
	if err != nil || len(kvs) != 12 || kvs[11].Key != "large/11" || len(kvs[11].Value) != len(largest) {
		t.Errorf("List of 12 large values: %d, %v", len(kvs), err)
	}
}

func unguarded(t *testing.T, s System) {
	c := s.Connect(t, "nobody")
	for _, epoch := range []uint64{0, 1, 99} {
		_, err := c.Txn(ctxOf(t), weirEpoch(epoch), ha.Create("k", nil))
		wantIs(t, fmt.Sprintf("Txn in epoch %d", epoch), err, ha.ErrNotLeader)
	}
	l := campaign(t, c, "jm")
	_, err := c.Txn(ctxOf(t), l.Epoch()+1, ha.Create("k", nil))
	wantIs(t, "Txn in a later epoch", err, ha.ErrNotLeader)
	mustTxn(t, c, l.Epoch(), ha.Create("k", nil))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Txn(ctx, l.Epoch(), ha.Create("k2", nil))
	wantIs(t, "Txn with an ended context", err, ha.ErrDoubtful)
	_, err = c.Get(ctx, "k")
	wantIs(t, "Get with an ended context", err, ha.ErrUnavailable)
}
