package checkpointing

import (
	"time"

	"github.com/weirflow/weir"
)

// RestoredSnapshot is what tasks started from.
type RestoredSnapshot struct {
	Checkpoint weir.CheckpointID
	Kind       weir.SnapshotKind
	Metadata   string    // blob name, or the path it was started from
	Foreign    bool      // of another job
	At         time.Time // when the tasks were started; set by the coordinator
}
