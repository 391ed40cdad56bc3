package checkpointing

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirflow/weir"
)

func TestFilesOfAForeignSnapshotAreKept(t *testing.T) {
	t.Parallel()
	r := NewSharedStateRegistry()
	r.Restore(CompletedCheckpoint{ID: 4, Foreign: true, Shared: []string{"shared/theirs"}})
	r.Restore(CompletedCheckpoint{ID: 5, Foreign: true, Owned: true, Shared: []string{"shared/claimed"}})
	r.Restore(CompletedCheckpoint{ID: 6, Owned: true, Shared: []string{"shared/ours", "shared/claimed"}})
	if got := r.Unregister(6); got != nil {
		t.Errorf("%v deleted while in use", got)
	}
	if got := r.Unregister(7); !slices.Equal(got, []string{"shared/claimed", "shared/ours"}) || r.Len() != 0 {
		t.Errorf("deleted %v, %d left", got, r.Len())
	}
}

// What is deleted is exactly what no snapshot from the lowest on names.
func TestSharedFilesLiveAsLongAsSomebodyNamesThem(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := NewSharedStateRegistry()
		last := map[string]weir.CheckpointID{} // by file, the newest that names it
		lowest := weir.CheckpointID(1)
		for id := weir.CheckpointID(1); id < 30; id++ {
			for _, name := range rapid.SliceOfN(rapid.SampledFrom([]string{"shared/a", "shared/b", "shared/c", "chk-1/d"}), 0, 3).Draw(t, "files") {
				known := r.Register(id, stateIn(name))
				if _, knew := last[name]; name != "chk-1/d" && (known > 0) != knew {
					t.Fatalf("%s: %d bytes known", name, known)
				}
				if name != "chk-1/d" {
					last[name] = id
				}
			}
			if rapid.Bool().Draw(t, "subsumes") {
				lowest = max(lowest, id-weir.CheckpointID(rapid.IntRange(0, 3).Draw(t, "kept")))
				var want []string
				for _, name := range []string{"shared/a", "shared/b", "shared/c"} {
					if l, ok := last[name]; ok && l < lowest {
						want = append(want, name)
						delete(last, name)
					}
				}
				if got := r.Unregister(lowest); !slices.Equal(got, want) {
					t.Fatalf("from %d on: deleted %v, want %v", lowest, got, want)
				}
			}
		}
	})
}
