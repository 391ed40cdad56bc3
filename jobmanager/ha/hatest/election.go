package hatest

import (
	"context"
	"testing"

	"github.com/weirflow/weir/jobmanager/ha"
)

func oneLeads(t *testing.T, s System) {
	first := s.Connect(t, "first")
	_, err := first.Leader(ctxOf(t))
	wantIs(t, "Leader before", err, ha.ErrNoLeader)
	l1 := campaign(t, first, "first")
	if isClosed(l1.Lost()) || l1.Err() != nil || l1.Epoch() == 0 {
		t.Fatalf("new leadership: lost %v, err %v, epoch %d", isClosed(l1.Lost()), l1.Err(), l1.Epoch())
	}
	second := s.Connect(t, "second")
	result := campaignLater(t, t.Context(), second, "second")
	who, err := second.Leader(ctxOf(t))
	if want := (ha.Leader{Candidate: ha.Candidate{ID: "first", Address: "first:1"}, Epoch: l1.Epoch()}); err != nil || who != want {
		t.Fatalf("Leader: %+v, %v; want %+v", who, err, want)
	}
	if err := l1.Resign(ctxOf(t)); err != nil {
		t.Fatal(err)
	}
	if !isClosed(l1.Lost()) || l1.Err() == nil {
		t.Error("resigned leadership is not lost")
	}
	got := await(t, "second's campaign", result)
	if got.err != nil {
		t.Fatal(got.err)
	}
	if got.leadership.Epoch() <= l1.Epoch() {
		t.Errorf("epoch %d follows %d", got.leadership.Epoch(), l1.Epoch())
	}
	if err := l1.Resign(ctxOf(t)); err != nil {
		t.Errorf("second Resign: %v", err)
	}
	if who, err := first.Leader(ctxOf(t)); err != nil || who.ID != "second" {
		t.Errorf("Leader: %+v, %v", who, err)
	}
	if isClosed(got.leadership.Lost()) {
		t.Error("the first one's second Resign ended the second one's leadership")
	}
}

func killedLeader(t *testing.T, s System) {
	c1, l1 := lead(t, s, "first")
	mustTxn(t, c1, l1.Epoch(), ha.Create("k", []byte("v")))
	second := s.Connect(t, "second")
	result := campaignLater(t, t.Context(), second, "second")
	s.Kill(c1)
	got := await(t, "second's campaign", result)
	if got.err != nil {
		t.Fatal(got.err)
	}
	if got.leadership.Epoch() <= l1.Epoch() {
		t.Errorf("epoch %d follows %d", got.leadership.Epoch(), l1.Epoch())
	}
	await(t, "the killed one's loss", l1.Lost())
	_, err := second.Txn(ctxOf(t), l1.Epoch(), ha.Create("other", nil))
	wantIs(t, "Txn in the old epoch", err, ha.ErrNotLeader)
	if kv := mustGet(t, second, "k"); string(kv.Value) != "v" {
		t.Errorf("k = %q", kv.Value)
	}
}

func campaignEnds(t *testing.T, s System) {
	_, l1 := lead(t, s, "first")
	second := s.Connect(t, "second")
	ctx, cancel := context.WithCancel(t.Context())
	result := campaignLater(t, ctx, second, "second")
	cancel()
	wantIs(t, "Campaign", await(t, "second's campaign", result).err, ha.ErrUnavailable)
	if isClosed(l1.Lost()) {
		t.Error("the first one lost its leadership")
	}
	// What it gave up does not stand in anybody's way.
	if err := l1.Resign(ctxOf(t)); err != nil {
		t.Fatal(err)
	}
	lead(t, s, "third")
}

func closeResigns(t *testing.T, s System) {
	c1, l1 := lead(t, s, "first")
	if err := c1.Close(); err != nil {
		t.Fatal(err)
	}
	if !isClosed(l1.Lost()) {
		t.Error("leadership is not lost after Close")
	}
	c2 := s.Connect(t, "second")
	if _, err := c2.Leader(ctxOf(t)); err == nil {
		t.Error("somebody leads after Close")
	}
	campaign(t, c2, "second")
	_, err := c1.Get(ctxOf(t), "k")
	wantIs(t, "Get after Close", err, ha.ErrClosed)
	_, err = c1.Campaign(ctxOf(t), ha.Candidate{ID: "first"})
	wantIs(t, "Campaign after Close", err, ha.ErrClosed)
	if err := c1.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func overtaken(t *testing.T, s System) {
	c1, l1 := lead(t, s, "first")
	mustTxn(t, c1, l1.Epoch(), ha.Create("k", []byte("old")))
	s.Overtake(t)
	c2, l2 := lead(t, s, "second")
	kv := mustGet(t, c2, "k")
	mustTxn(t, c2, l2.Epoch(), ha.Update(kv, []byte("new")))
	_, err := c1.Txn(ctxOf(t), l1.Epoch(), ha.Update(mustGet(t, c1, "k"), []byte("late")))
	wantIs(t, "write of the overtaken", err, ha.ErrNotLeader)
	await(t, "loss of the overtaken", l1.Lost())
	if kv := mustGet(t, c1, "k"); string(kv.Value) != "new" {
		t.Errorf("k = %q", kv.Value)
	}
	if isClosed(l2.Lost()) {
		t.Error("the new leadership is lost")
	}
	// The overtaken one may lead again, in a new epoch.
	if err := l2.Resign(ctxOf(t)); err != nil {
		t.Fatal(err)
	}
	if l3 := campaign(t, c1, "first"); l3.Epoch() <= l2.Epoch() || isClosed(l3.Lost()) {
		t.Errorf("epoch %d follows %d, lost %v", l3.Epoch(), l2.Epoch(), isClosed(l3.Lost()))
	}
	_, err = c1.Txn(ctxOf(t), l1.Epoch(), ha.Create("k2", nil))
	wantIs(t, "write in the first epoch", err, ha.ErrNotLeader)
}
