package input_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/weirflow/weir/netstack/wire"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/taskmanager/input"
)

// recoverAll feeds chunks of one byte.
func recoverAll(t *testing.T, r *input.Recovery, b []byte) {
	t.Helper()
	for _, x := range b {
		r.Feed(0, []byte{x})
		for {
			more, err := r.Step()
			if err != nil {
				t.Fatal(err)
			}
			if !more {
				break
			}
		}
	}
}

func TestRecoveredDataIsProcessedFirst(t *testing.T) {
	t.Parallel()
	a, b, s := newGate(t, 1), newGate(t, 2), &fakeSink{suspendAt: 1}
	in := newAlternating(s, false, a, b)
	b.data(0, word(9, "live"))
	var mark [wire.MaxElementHead]byte
	n := wire.PutWatermark(mark[:], 0, 3)

	old := in.Recover(input.RecoveredChannel{Gate: 1, Channel: -1})
	recoverAll(t, old, slices.Concat(word(1, "x"), mark[:n], word(2, "y")))
	if err := old.End(); err != nil {
		t.Fatal(err)
	}
	same := in.Recover(input.RecoveredChannel{Gate: 0, Channel: 0})
	same.Feed(0, slices.Concat(word(1, "p"), word(1, "q"), mark[:n], word(2, "r")))
	for more := true; more; {
		var err error
		if more, err = same.Step(); err != nil {
			t.Fatal(err)
		}
	}
	b.data(0, mark[:n])
	b.data(1, mark[:n])
	drain(t, in)
	expect(t, "log", s.log, "1:x", "1:y", "0:p", "0:q", "0:r", "1:live", "watermark 3")
}

func TestRecoveredRecordsOfOthersAreDropped(t *testing.T) {
	t.Parallel()
	g := newGate(t, 1)
	var got []uint64
	s := &fakeSink{process: func(b *operator.Batch) error {
		got = append(got, b.Hash[b.Next:b.N]...)
		b.Next = b.N
		return nil
	}}
	in := input.New(input.Options{Gates: []input.Gate{g}, Keyed: []bool{true}, Sink: s, Now: time.Now})
	r := in.Recover(input.RecoveredChannel{Keep: func(hash uint64) bool { return hash%3 == 1 }})
	var b []byte
	for hash := range uint64(300) {
		b = append(b, record(true, hash, 1, []byte("p"))...)
	}
	r.Feed(0, b)
	for more := true; more; {
		var err error
		if more, err = r.Step(); err != nil {
			t.Fatal(err)
		}
	}
	if len(got) != 100 || got[0] != 1 || got[99] != 298 {
		t.Errorf("kept %d: %v", len(got), got)
	}
}

func TestHalfARecordAtTheEndIsAnError(t *testing.T) {
	t.Parallel()
	in := newAlternating(&fakeSink{}, false, newGate(t, 1))
	r := in.Recover(input.RecoveredChannel{})
	recoverAll(t, r, word(1, "abc")[:4])
	if err := r.End(); !errors.Is(err, input.ErrHalfRecord) {
		t.Errorf("got %v", err)
	}
	r = in.Recover(input.RecoveredChannel{})
	r.Feed(0, []byte{1, 99})
	if _, err := r.Step(); !errors.Is(err, wire.ErrMalformed) {
		t.Errorf("got %v", err)
	}
}
