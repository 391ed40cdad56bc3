package jobmaster

import (
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/blobstore/mem"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/jobmanager/checkpointing/store"
	"github.com/weirflow/weir/metrics"
	"github.com/weirflow/weir/snapshotmeta"
)

// inFiles is a snapshot whose state and in-flight data lie in files.
func inFiles() *snapshotmeta.Snapshot {
	ref := snapshotmeta.OperatorRef{ID: weir.OperatorIDOf("count"), Name: "count"}
	file := weir.StateHandle{File: "chk-7/part", Length: 9, CRC: 1}
	state := weir.OperatorSubtaskState{Operator: ref.ID, Name: ref.Name, Elements: []weir.StateHandle{file}}
	return &snapshotmeta.Snapshot{
		Header: snapshotmeta.Header{
			Job: weir.JobID{7}, JobName: "j", Checkpoint: 7, Kind: weir.Checkpoint, Epoch: 1, Entrypoint: "j", CodeID: "c",
			GraphHash: jobgraph.Digest{1}, GraphText: "weir graph 1\n", Triggered: time.UnixMilli(1), Completed: time.UnixMilli(2),
			Vertices: []snapshotmeta.Vertex{{Name: "count", Parallelism: 1, MaxParallelism: 128, Operators: []snapshotmeta.OperatorRef{ref}}},
		},
		Operators: []snapshotmeta.Operator{{
			OperatorRef: ref, Parallelism: 1, MaxParallelism: 128, Subtasks: []snapshotmeta.Subtask{{State: state}},
		}},
		Channels: []weir.ChannelStateHandle{{Edge: weir.EdgeID{From: "count", To: "count"}, Side: weir.ConsumerSide, Handle: file}},
	}
}

func TestFilesOfAnotherClustersSnapshotAreReadWhereTheyLie(t *testing.T) {
	t.Parallel()
	own, other := mem.New(), mem.New()
	s := inFiles()
	written, err := store.NewMetadataStore(other).Write(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	opened := func(string) (blobstore.Store, error) { return other, nil }
	l := &loop{deps: Deps{Blobs: own, OpenStore: opened}, spec: &Spec{Directory: "mine"}, log: zap.NewNop()}
	l.figs = metrics.New(metrics.Build{}).Job(weir.JobID{1}, "job")
	name := snapshotmeta.Foreign("/elsewhere", written.Name)
	loaded, ok := l.readSnapshot(t.Context(), LoadSnapshot{Metadata: name}).(SnapshotLoaded)
	if !ok {
		t.Fatalf("not loaded: %+v", l.readSnapshot(t.Context(), LoadSnapshot{Metadata: name}))
	}
	want := snapshotmeta.Foreign("/elsewhere", s.Header.Job.String()+"/chk-7/part")
	got := loaded.Snapshot
	files := []string{got.Channels[0].Handle.File}
	for _, e := range got.Operators[0].Subtasks[0].State.Elements {
		files = append(files, e.File)
	}
	if !slices.Equal(files, []string{want, want}) {
		t.Errorf("in-flight data and state in %q, want %q", files, want)
	}
}
