package store

import "github.com/weirflow/weir"

// CommitPermit says that a checkpoint is complete: it is a link of its job's chain.
// Only [Chain.Add] makes one; the zero value permits nothing.
type CommitPermit struct {
	id weir.CheckpointID
}

// ID is the checkpoint that may be notified as complete; NoCheckpoint for the zero value.
func (p CommitPermit) ID() weir.CheckpointID { return p.id }
