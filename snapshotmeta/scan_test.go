package snapshotmeta_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore/mem"
	"github.com/weirflow/weir/blobstore/storetest"
	"github.com/weirflow/weir/snapshotmeta"
)

// collected puts together what a visitor is told.
func collected(s **snapshotmeta.Snapshot, calls *int) snapshotmeta.Visitor {
	return snapshotmeta.Visitor{
		Header: func(h *snapshotmeta.Header) error {
			*calls++
			*s = snapshotmeta.New(*h)
			return nil
		},
		Subtask: func(op *snapshotmeta.Operator, sub *snapshotmeta.Subtask) error {
			*calls++
			to := (*s).Operator(op.ID)
			to.Subtasks = append(to.Subtasks, *sub)
			return nil
		},
		Coordinator: func(op *snapshotmeta.Operator) error {
			*calls++
			(*s).Operator(op.ID).Coordinator = op.Coordinator
			return nil
		},
		Channel: func(c *weir.ChannelStateHandle) error {
			*calls++
			(*s).Channels = append((*s).Channels, *c)
			return nil
		},
	}
}

func TestWalkTellsAllThatReadReturns(t *testing.T) {
	for _, want := range []*snapshotmeta.Snapshot{sample(), unaligned()} {
		store := mem.New()
		content := write(t, want)
		storetest.Put(t, store, "job/chk-7/_metadata", content)
		read, err := snapshotmeta.Read(bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"job/chk-7", "job/chk-7/_metadata"} {
			var got *snapshotmeta.Snapshot
			var calls int
			h, err := snapshotmeta.Walk(t.Context(), store, name, collected(&got, &calls))
			if err != nil || !reflect.DeepEqual(got, read) || !reflect.DeepEqual(*h, read.Header) {
				t.Errorf("%s: %v\n%+v\nwant\n%+v", name, err, got, read)
			}
		}
	}
}

func TestWalkTellsNothingOfADamagedFile(t *testing.T) {
	content := write(t, unaligned())
	for at := 0; at < len(content); at += 7 {
		store := mem.New()
		bad := bytes.Clone(content)
		bad[at] ^= 0x10
		storetest.Put(t, store, "job/chk-7/_metadata", bad)
		var s *snapshotmeta.Snapshot
		var calls int
		_, err := snapshotmeta.Walk(t.Context(), store, "job/chk-7", collected(&s, &calls))
		if err == nil || calls != 0 {
			t.Errorf("flipped bit in byte %d: %d calls, %v", at, calls, err)
		}
	}
}

func TestWalkStopsWhenTheVisitorDoes(t *testing.T) {
	store := mem.New()
	storetest.Put(t, store, "job/chk-7/_metadata", write(t, unaligned()))
	stop := errors.New("enough")
	for _, v := range []snapshotmeta.Visitor{
		{Header: func(*snapshotmeta.Header) error { return stop }},
		{Subtask: func(*snapshotmeta.Operator, *snapshotmeta.Subtask) error { return stop }},
		{Coordinator: func(*snapshotmeta.Operator) error { return stop }},
		{Channel: func(*weir.ChannelStateHandle) error { return stop }},
	} {
		_, err := snapshotmeta.Walk(t.Context(), store, "job/chk-7", v)
		wantIs(t, "Walk", err, stop)
	}
	_, err := snapshotmeta.Walk(t.Context(), store, "job/chk-8", snapshotmeta.Visitor{})
	wantIs(t, "Walk of nothing", err, snapshotmeta.ErrNotFound)
}
