package ha

import (
	"time"

	"github.com/weirflow/weir"
)

// JobRecord is what is kept of a submission. It never changes.
type JobRecord struct {
	Job        weir.JobID `json:"-"`
	Name       string     `json:"name"`       // unique among live jobs
	RequestID  string     `json:"requestId"`  // of the submit; drawn by the caller if the client gave none
	EntryPoint string     `json:"entryPoint"` // for lists
	CodeID     string     `json:"codeId"`     // of the binary the job is pinned to
	GraphHash  string     `json:"graphHash"`
	// Body names the blob with the whole submission: parameters, options, rules.
	Body      string    `json:"body"`
	Submitted time.Time `json:"submitted"`
}

// JobStatus is what a job has come to.
type JobStatus struct {
	State string `json:"state"` // the execution graph's word, for example "running"
	// Terminal says that nothing of the job will run again. The job's name is free
	// then; its record and result are kept until [JobStore.Remove].
	Terminal bool             `json:"terminal"`
	Epoch    weir.LeaderEpoch `json:"epoch"` // of the leader that wrote it
	Since    time.Time        `json:"since"`
	Restarts int64            `json:"restarts"`
	Failure  *weir.Failure    `json:"failure,omitempty"` // the cause, if it failed
	Result   []byte           `json:"result,omitempty"`  // opaque; of a terminal job
}

// Job is a record with its status.
type Job struct {
	Record JobRecord
	Status JobStatus
}

// Link is one completed snapshot in a job's chain.
type Link struct {
	Number     uint64            `json:"-"`      // 1, 2, …
	Parent     uint64            `json:"parent"` // number of the link before; 0: none
	Checkpoint weir.CheckpointID `json:"checkpoint"`
	Kind       weir.SnapshotKind `json:"kind"`
	// Metadata is the blob name of the _metadata file in the checkpoint store.
	Metadata string           `json:"metadata"`
	Epoch    weir.LeaderEpoch `json:"epoch"` // of the leader that wrote it
	Bytes    int64            `json:"bytes"` // size of the whole snapshot, for lists
	At       time.Time        `json:"at"`    // completion
}
