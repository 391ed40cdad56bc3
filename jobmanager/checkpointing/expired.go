package checkpointing

import (
	"slices"

	"github.com/weirflow/weir"
)

// maxExpired is how many expired checkpoints are remembered (behaviour §5.3).
const maxExpired = 16

// expiredIDs remembers the last expired checkpoints, so that late acknowledgements of
// theirs can be told from those of checkpoints nobody knows.
type expiredIDs []weir.CheckpointID

func (e *expiredIDs) add(id weir.CheckpointID) {
	if len(*e) == maxExpired {
		*e = slices.Delete(*e, 0, 1)
	}
	*e = append(*e, id)
}

func (e expiredIDs) has(id weir.CheckpointID) bool { return slices.Contains(e, id) }
