package checkpointdemo

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/snapshotmeta"
	"github.com/weirflow/weir/statebackend"
	"github.com/weirflow/weir/statebackend/heap"
)

// tallySchema is the schema under which the tallies are written.
var tallySchema = weir.StateSchema{State: TallyState, Key: "string", Value: "fixed 16 struct{1 Count int64; 2 Sum int64}"}

// ReadState reads the tallies of all keys from a checkpoint of this job; name is
// that of its directory in the store.
func ReadState(ctx context.Context, store blobstore.Store, name string) (map[string]Tally, error) {
	s, err := snapshotmeta.Open(ctx, store, name)
	if err != nil {
		return nil, err
	}
	op := s.Operator(weir.OperatorIDOf(CountOperator))
	if op == nil {
		return nil, fmt.Errorf("snapshot %s is of job %q and has no operator %q", name, s.Header.Entrypoint, CountOperator)
	}
	var handles []weir.KeyedStateHandle
	for _, subtask := range op.Subtasks {
		handles = append(handles, subtask.State.Keyed...)
	}
	all := weir.KeyGroupRange{First: 0, Last: int32(op.MaxParallelism) - 1}
	backend, err := heap.NewFactory(heap.NewPagePool(0)).New(statebackend.Options{MaxParallelism: op.MaxParallelism, KeyGroups: all})
	if err != nil {
		return nil, err
	}
	files := snapshotmeta.Files{Store: store, Dir: snapshotmeta.JobDir(s.Header.Job)}
	tallies, err := scanTallies(ctx, backend, handles, files.Open)
	return tallies, errors.Join(err, backend.Close())
}

func scanTallies(ctx context.Context, b statebackend.Backend, handles []weir.KeyedStateHandle, open statebackend.OpenFunc) (map[string]Tally, error) {
	if err := b.Restore(ctx, handles, open); err != nil {
		return nil, err
	}
	table, err := b.Table(statebackend.Descriptor{Name: TallyState, FixedSize: 16, Schema: tallySchema})
	if err != nil {
		return nil, err
	}
	tallies := make(map[string]Tally)
	table.Scan(func(_ weir.KeyGroup, key, _, value []byte) bool {
		var name string
		var tally Tally
		if name, tally, err = ReadTally(key, value); err == nil {
			tallies[name] = tally
		}
		return err == nil
	})
	return tallies, err
}
