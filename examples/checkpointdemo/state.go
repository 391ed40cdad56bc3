package checkpointdemo

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"strings"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/codec"
	"github.com/weirflow/weir/connector/generator"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/snapshotmeta"
	"github.com/weirflow/weir/statebackend"
	"github.com/weirflow/weir/statebackend/heap"
)

// tallySchema is the schema under which the tallies are written.
var tallySchema = weir.StateSchema{State: TallyState, Key: "string", Value: "fixed 16 struct{1 Count int64; 2 Sum int64}"}

// ReadState reads the tallies of all keys from a checkpoint or savepoint of this job;
// name is that of its directory in the store.
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
	files := snapshotmeta.Files{Store: store, Dir: path.Dir(strings.TrimSuffix(path.Clean(name), "/"+snapshotmeta.MetadataFile))}
	tallies, err := scanTallies(ctx, backend, handles, files.Open)
	return tallies, errors.Join(err, backend.Close())
}

// InFlight is what was between the sources and the counters when a checkpoint was
// taken, as the numbers in the records prove it.
type InFlight struct {
	Emitted   int64 // records that the sources had emitted before their barriers
	Processed int64 // records that the counters had processed before their snapshots
	// Bytes of the records that were emitted and not processed.
	Bytes int64
	// Captured are the bytes of in-flight data in the checkpoint; none if it aligned.
	Captured int64
}

// Records were in flight.
func (f InFlight) Records() int64 { return f.Emitted - f.Processed }

// elementHead is what a record of a keyed edge has besides its payload, about: length,
// kind, timestamp and hash.
const elementHead = 13

// ReadInFlight reads from a checkpoint of this job what was in flight; name is that of
// its directory in the store.
func ReadInFlight(ctx context.Context, store blobstore.Store, name string) (InFlight, error) {
	var f InFlight
	s, err := snapshotmeta.Open(ctx, store, name)
	if err != nil {
		return f, err
	}
	err = eachElement(ctx, store, s, SourceOperator, func(b []byte) error {
		p, err := generator.ReadProgress(b)
		f.Emitted += p.Emitted
		return err
	})
	if err != nil {
		return f, err
	}
	err = eachElement(ctx, store, s, CountOperator, func(b []byte) error {
		n, err := readProcessed(b)
		f.Processed += n
		return err
	})
	if err != nil {
		return f, err
	}
	for _, c := range s.Channels {
		f.Captured += c.Handle.Length
	}
	bytes, err := recordBytes(s.Header.Params, f.Emitted)
	f.Bytes = f.Records() * bytes
	return f, err
}

// recordBytes is how many bytes the record of this number has on the wire.
func recordBytes(params map[string]string, number int64) (int64, error) {
	text, given := params["size"]
	if !given {
		text = defaultSize
	}
	size, err := flow.ParseSize(text)
	if err != nil {
		return 0, err
	}
	events, err := codec.For[Event]()
	if err != nil {
		return 0, err
	}
	e := newEvents(Params{Size: size, Keys: 1})(number)
	payload, err := events.Append(nil, &e)
	return int64(len(payload) + elementHead), err
}

// eachElement calls fn for the elements of an operator's own state.
func eachElement(ctx context.Context, store blobstore.Store, s *snapshotmeta.Snapshot, operator string, fn func(b []byte) error) error {
	op := s.Operator(weir.OperatorIDOf(operator))
	if op == nil {
		return fmt.Errorf("snapshot of job %q has no operator %q", s.Header.Entrypoint, operator)
	}
	files := snapshotmeta.Files{Store: store, Dir: snapshotmeta.JobDir(s.Header.Job)}
	for _, subtask := range op.Subtasks {
		for _, h := range subtask.State.Elements {
			r, err := files.Open(ctx, h)
			if err != nil {
				return err
			}
			b, err := io.ReadAll(r)
			if err = errors.Join(err, r.Close()); err == nil {
				err = fn(b)
			}
			if err != nil {
				return fmt.Errorf("state of %q, subtask %d: %w", operator, subtask.Index, err)
			}
		}
	}
	return nil
}

// readProcessed decodes a counter's own state.
func readProcessed(b []byte) (int64, error) {
	n, k := binary.Uvarint(b)
	if k <= 0 || k != len(b) || n > math.MaxInt64 {
		return 0, fmt.Errorf("a number of processed records in %d bytes", len(b))
	}
	return int64(n), nil
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
