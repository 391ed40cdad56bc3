package randomjob

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/codec"
	"github.com/weirflow/weir/connector/generator"
	"github.com/weirflow/weir/snapshotmeta"
	"github.com/weirflow/weir/statebackend"
	"github.com/weirflow/weir/statebackend/heap"
)

func (t Tally) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(t.Count))
	return binary.LittleEndian.AppendUint64(b, t.Sum)
}

func parseTally(b []byte) (Tally, error) {
	if len(b) != 16 {
		return Tally{}, fmt.Errorf("a tally of %d bytes", len(b))
	}
	return Tally{int64(binary.LittleEndian.Uint64(b)), binary.LittleEndian.Uint64(b[8:])}, nil
}

// merge adds what another subtask has counted.
func (t *Tally) merge(o Tally) {
	t.Count += o.Count
	t.Sum += o.Sum
}

// ReadState reads what all operators of a job with these parameters have counted from
// a checkpoint, and how far its sources were read; name is that of its directory in
// the store.
func ReadState(ctx context.Context, store blobstore.Store, name string, p Params) (Answer, Positions, error) {
	s, err := snapshotmeta.Open(ctx, store, name)
	if err != nil {
		return nil, nil, err
	}
	return ReadSnapshot(ctx, s, snapshotmeta.Files{Store: store, Dir: snapshotmeta.JobDir(s.Header.Job)}, p)
}

// ReadSnapshot is [ReadState] of a snapshot that was opened.
func ReadSnapshot(ctx context.Context, s *snapshotmeta.Snapshot, files snapshotmeta.Files, p Params) (answer Answer, at Positions, err error) {
	answer = make(Answer)
	plan := p.Plan()
	at = make(Positions, plan.Sources)
	for i, n := range plan.Nodes {
		op := s.Operator(weir.OperatorIDOf(n.Name))
		if op == nil {
			continue
		}
		tallies := make(map[int64]Tally)
		switch {
		case n.Kind == Source:
			err = readPositions(ctx, files, op, &at[i])
		case n.Kind == Alone:
			err = readAlone(ctx, files, op, tallies)
		case n.Kind.Keyed():
			err = readKeyed(ctx, files, op, tallies)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("operator %s: %w", n.Name, err)
		}
		if len(tallies) > 0 {
			answer[n.Name] = tallies
		}
	}
	return answer, at, nil
}

// elements calls fn for the elements of an operator's own state.
func elements(ctx context.Context, files snapshotmeta.Files, op *snapshotmeta.Operator, fn func([]byte) error) error {
	for _, sub := range op.Subtasks {
		for _, h := range sub.State.Elements {
			r, err := files.Open(ctx, h)
			if err != nil {
				return err
			}
			b, err := io.ReadAll(r)
			if err = errors.Join(err, r.Close()); err == nil {
				err = fn(b)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func readPositions(ctx context.Context, files snapshotmeta.Files, op *snapshotmeta.Operator, splits *[]generator.Progress) error {
	return elements(ctx, files, op, func(b []byte) error {
		p, err := generator.ReadProgress(b)
		*splits = append(*splits, p)
		return err
	})
}

func readAlone(ctx context.Context, files snapshotmeta.Files, op *snapshotmeta.Operator, tallies map[int64]Tally) error {
	var sum Tally
	err := elements(ctx, files, op, func(b []byte) error {
		t, err := parseTally(b)
		sum.merge(t)
		return err
	})
	if sum.Count > 0 {
		tallies[0] = sum
	}
	return err
}

func readKeyed(ctx context.Context, files snapshotmeta.Files, op *snapshotmeta.Operator, tallies map[int64]Tally) error {
	for _, sub := range op.Subtasks {
		groups := weir.KeyGroupRangeOf(op.MaxParallelism, op.Parallelism, int(sub.Index))
		b, err := heap.NewFactory(heap.NewPagePool(0)).New(statebackend.Options{MaxParallelism: op.MaxParallelism, KeyGroups: groups})
		if err != nil {
			return err
		}
		if err = b.Restore(ctx, sub.State.Keyed, files.Open); err == nil {
			err = scan(b, tallies)
		}
		if err = errors.Join(err, b.Close()); err != nil {
			return err
		}
	}
	return nil
}

// scan adds the tallies of a backend. A key that is there already belongs to two subtasks.
func scan(b statebackend.Backend, tallies map[int64]Tally) error {
	schema, ok := b.RestoredSchema(TallyState)
	if !ok {
		return nil
	}
	keys, err := codec.ForKey[int64]()
	if err != nil {
		return err
	}
	values, err := codec.For[Tally]()
	if err != nil {
		return err
	}
	table, err := b.Table(statebackend.Descriptor{Name: TallyState, FixedSize: values.FixedSize(), Schema: schema})
	if err != nil {
		return err
	}
	table.Scan(func(_ weir.KeyGroup, key, _, value []byte) bool {
		var k int64
		var t Tally
		if err = keys.Decode(key, &k); err == nil {
			err = values.GetFixed(value, &t)
		}
		if _, twice := tallies[k]; twice && err == nil {
			err = fmt.Errorf("key %d is there twice", k)
		}
		tallies[k] = t
		return err == nil
	})
	return err
}
