package snapshotmeta

import (
	"fmt"
	"path"

	"github.com/weirflow/weir"
)

// Names in a job's checkpoint directory, which is <job id> in the checkpoint store:
//
//	chk-7/_metadata              the snapshot
//	chk-7/v2-s0-e5-n1.state      state that belongs to it alone
//	chk-7/v2-s0-e5-n1.channels   what was in flight, of up to some subtasks
//	shared/...                   state that later snapshots may refer to
const (
	MetadataFile = "_metadata"
	SharedDir    = "shared"

	stateExt    = ".state"
	channelsExt = ".channels"
)

// JobDir is a job's directory in the checkpoint store.
func JobDir(job weir.JobID) string { return job.String() }

// Dir is the directory of a checkpoint within its job's: the Location of its
// options.
func Dir(id weir.CheckpointID) string { return fmt.Sprintf("chk-%d", id) }

// MetadataName is the blob name of a checkpoint's _metadata in the checkpoint store.
func MetadataName(job weir.JobID, id weir.CheckpointID) string {
	return path.Join(JobDir(job), Dir(id), MetadataFile)
}

// StateFileName is the name, within the job's directory, of the state file of one
// attempt in the checkpoint with this location. An attempt writes one file per
// checkpoint, so no name is used twice.
func StateFileName(location string, a weir.AttemptID) string {
	return fmt.Sprintf("%s/v%d-s%d-e%d-n%d"+stateExt, location, a.Vertex, a.Subtask, a.Epoch, a.N)
}

// ChannelFileName is the name, within the job's directory, of the state file in which
// a group of subtasks keeps the channel state of the checkpoint with this location. The
// attempt is the group's first; it belongs to no other group, so no name is used twice.
func ChannelFileName(location string, a weir.AttemptID) string {
	return fmt.Sprintf("%s/v%d-s%d-e%d-n%d"+channelsExt, location, a.Vertex, a.Subtask, a.Epoch, a.N)
}
