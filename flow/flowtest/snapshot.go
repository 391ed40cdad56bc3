package flowtest

import (
	"bytes"
	"context"
	"io"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/statebackend/heap"
)

// Snapshot is what one or several tasks had at a checkpoint.
type Snapshot struct {
	Operators map[weir.OperatorID][][]byte
	Keyed     map[weir.OperatorID][]weir.KeyedStateHandle
}

// Snapshot goes through the steps of a checkpoint: prepare, operators' own state,
// keyed state.
func (k *Task) Snapshot(id weir.CheckpointID) *Snapshot {
	k.t.Helper()
	if err := k.Chain.PrepareSnapshot(id); err != nil {
		k.t.Fatalf("prepare snapshot: %v", err)
	}
	s := &Snapshot{Operators: make(map[weir.OperatorID][][]byte), Keyed: make(map[weir.OperatorID][]weir.KeyedStateHandle)}
	states, err := k.Chain.SnapshotState(id)
	if err != nil {
		k.t.Fatalf("snapshot: %v", err)
	}
	for _, o := range states {
		s.Operators[o.Operator] = o.Elements
	}
	for op, b := range k.backends {
		captured, err := b.Snapshot()
		if err != nil {
			k.t.Fatalf("snapshot: %v", err)
		}
		var buf bytes.Buffer
		_, err = captured.Write(context.Background(), &buf)
		captured.Release()
		if err != nil {
			k.t.Fatalf("write snapshot: %v", err)
		}
		s.Keyed[op] = []weir.KeyedStateHandle{{Range: k.Env.KeyGroups, Backend: heap.Name,
			Handle: weir.StateHandle{Inline: buf.Bytes(), Length: int64(buf.Len())}}}
	}
	return s
}

// Merge puts the snapshots of several subtasks together; elements and key groups
// of all of them are then dealt to those who are restored.
func Merge(parts ...*Snapshot) *Snapshot {
	s := &Snapshot{Operators: make(map[weir.OperatorID][][]byte), Keyed: make(map[weir.OperatorID][]weir.KeyedStateHandle)}
	for _, p := range parts {
		for op, elements := range p.Operators {
			s.Operators[op] = append(s.Operators[op], elements...)
		}
		for op, handles := range p.Keyed {
			s.Keyed[op] = append(s.Keyed[op], handles...)
		}
	}
	return s
}

func openInline(_ context.Context, h weir.StateHandle) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(h.Inline)), nil
}
