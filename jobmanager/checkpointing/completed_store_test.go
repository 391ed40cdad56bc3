package checkpointing

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/weirflow/weir"
)

// TestStore runs the cases of the completed store that concern the list: "new
// retained=N SNAPSHOT…", "add SNAPSHOT". C3 is a checkpoint, S3 a savepoint, Y3 a
// synchronous savepoint.
func TestStore(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/store", func(t *testing.T, path string) {
		var s *CompletedCheckpointStore
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			switch td.Cmd {
			case "new":
				s = NewCompletedCheckpointStore(arg(t, td, "retained", 1))
				for _, a := range td.CmdArgs {
					if a.Key != "retained" {
						s.list = append(s.list, snapshotNamed(t, a.Key))
					}
				}
				return snapshotNames(s.List())
			case "add":
				subsumed := s.Add(snapshotNamed(t, td.CmdArgs[0].Key))
				return fmt.Sprintf("subsumed: %s\nkept: %s", snapshotNames(subsumed), snapshotNames(s.List()))
			}
			td.Fatalf(t, "unknown command %s", td.Cmd)
			return ""
		})
	})
}

var snapshotLetters = map[byte]weir.SnapshotKind{'C': weir.Checkpoint, 'S': weir.Savepoint, 'Y': weir.SuspendSavepoint}

func snapshotNamed(t *testing.T, name string) CompletedCheckpoint {
	t.Helper()
	c := CompletedCheckpoint{Kind: snapshotLetters[name[0]]}
	if _, err := fmt.Sscan(name[1:], &c.ID); err != nil {
		t.Fatalf("snapshot %q: %v", name, err)
	}
	c.Owned = !c.Kind.IsSavepoint()
	return c
}

func snapshotNames(list []CompletedCheckpoint) string {
	text := ""
	for _, c := range list {
		for letter, kind := range snapshotLetters {
			if c.Kind == kind {
				text += fmt.Sprintf("%c%d ", letter, c.ID)
			}
		}
	}
	if text == "" {
		return "none"
	}
	return text[:len(text)-1]
}

func TestStoreKeepsWhatARestoreNeeds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		retained := rapid.IntRange(1, 4).Draw(t, "retained")
		s := NewCompletedCheckpointStore(retained)
		var all []CompletedCheckpoint
		gone := map[weir.CheckpointID]bool{}
		for id := range rapid.IntRange(1, 20).Draw(t, "snapshots") {
			kind := rapid.SampledFrom([]weir.SnapshotKind{weir.Checkpoint, weir.Savepoint, weir.SuspendSavepoint}).Draw(t, "kind")
			c := CompletedCheckpoint{ID: weir.CheckpointID(id + 1), Kind: kind, Owned: kind == weir.Checkpoint}
			all = append(all, c)
			for _, old := range s.Add(c) {
				if gone[old.ID] {
					t.Fatalf("%d was subsumed twice", old.ID)
				}
				gone[old.ID] = true
			}
			if latest, ok := s.Latest(); !ok || latest.ID != c.ID {
				t.Fatalf("the newest is %v, want %d", latest, c.ID)
			}
			if n := len(s.List()); n > retained+1 {
				t.Fatalf("%d kept, want at most %d and one", n, retained)
			}
			for i := len(all) - 1; i >= 0 && !kind.IsSynchronous(); i-- {
				if all[i].Kind == weir.Checkpoint {
					if !gone[all[i].ID] || slices.ContainsFunc(all[i+1:], func(c CompletedCheckpoint) bool { return c.Kind.IsSynchronous() }) {
						break
					}
					t.Fatalf("the newest checkpoint, %d, is gone", all[i].ID)
				}
			}
		}
	})
}
