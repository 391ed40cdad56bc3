package snapshotmeta_test

import (
	"errors"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/blobstore/mem"
	"github.com/weirflow/weir/blobstore/storetest"
	"github.com/weirflow/weir/snapshotmeta"
)

// TestVerifyFindsEveryDamage of a state file: any byte changed, any cut, and its absence.
func TestVerifyFindsEveryDamage(t *testing.T) {
	build := mem.New()
	w := snapshotmeta.NewStateFileWriter(options(build, 0))
	op := weir.OperatorSubtaskState{Operator: weir.OperatorIDOf("count"), Name: "count", Elements: []weir.StateHandle{
		section(t, w, "a", "some state"), section(t, w, "b", "and more of it"), inline("and inline"),
	}}
	if err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := snapshotmeta.New(snapshotmeta.Header{Job: weir.JobID{1}, Checkpoint: 7, Vertices: []snapshotmeta.Vertex{
		{Name: "count", Parallelism: 1, MaxParallelism: 128, Operators: []snapshotmeta.OperatorRef{{ID: op.Operator, Name: "count"}}},
	}})
	if err := s.AddTask(weir.SubtaskID{}, weir.TaskStateSnapshot{Operators: []weir.OperatorSubtaskState{op}}); err != nil {
		t.Fatal(err)
	}
	content, metadata := storetest.Get(t, build, stateFile), write(t, s)
	damage := func(file []byte) (list []snapshotmeta.Damage) {
		t.Helper()
		store := mem.New()
		storetest.Put(t, store, "job/chk-7/_metadata", metadata)
		if file != nil {
			storetest.Put(t, store, stateFile, file)
		}
		sum, err := snapshotmeta.Verify(t.Context(), store, "job/chk-7", func(d snapshotmeta.Damage) error {
			list = append(list, d)
			return nil
		})
		if err != nil || sum.Files != 1 || sum.Parts != 3 || sum.Damage != len(list) {
			t.Errorf("%+v, %v", sum, err)
		}
		return list
	}
	if got := damage(content); len(got) != 0 {
		t.Fatalf("a whole one is damaged: %+v", got)
	}
	for at := range content {
		bad := append([]byte(nil), content...)
		bad[at] ^= 0x20
		if len(damage(bad)) == 0 {
			t.Errorf("byte %d of %d was changed, and nothing was found", at, len(content))
		}
	}
	for n := range content {
		if len(damage(content[:n])) == 0 {
			t.Errorf("cut after %d bytes, and nothing was found", n)
		}
	}
	missing := damage(nil)
	if len(missing) != 2 || missing[0].Owner != "count[0]" || !errors.Is(missing[0].Err, blobstore.ErrNotFound) {
		t.Errorf("without the file: %+v", missing)
	}
	stop := errors.New("enough")
	store := mem.New()
	storetest.Put(t, store, "job/chk-7/_metadata", metadata)
	if _, err := snapshotmeta.Verify(t.Context(), store, "job/chk-7/_metadata", func(snapshotmeta.Damage) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("Verify: %v", err)
	}
}
