package snapshotmeta

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/proto/snapshotpb"
)

// Native types to messages and back. What comes from a message is checked here.

func headerToPB(h *Header) *snapshotpb.Header {
	m := &snapshotpb.Header{
		JobId: h.Job[:], JobName: h.JobName, CheckpointId: int64(h.Checkpoint), Kind: uint32(h.Kind),
		LeaderEpoch: uint64(h.Epoch), Entrypoint: h.Entrypoint, CodeId: h.CodeID,
		GraphHash: h.GraphHash[:], GraphText: h.GraphText,
		TriggeredAt: h.Triggered.UnixMilli(), CompletedAt: h.Completed.UnixMilli(),
	}
	for _, key := range slices.Sorted(maps.Keys(h.Params)) {
		m.Params = append(m.Params, &snapshotpb.Param{Key: key, Value: h.Params[key]})
	}
	for _, v := range h.Vertices {
		mv := &snapshotpb.Vertex{Name: v.Name, Parallelism: int32(v.Parallelism), MaxParallelism: int32(v.MaxParallelism)}
		for _, op := range v.Operators {
			mv.Operators = append(mv.Operators, &snapshotpb.Operator{Id: op.ID[:], Name: op.Name})
		}
		m.Vertices = append(m.Vertices, mv)
	}
	for _, k := range h.Hooks {
		m.Hooks = append(m.Hooks, &snapshotpb.Hook{Name: k.Name, State: k.State})
	}
	return m
}

func headerFromPB(m *snapshotpb.Header) (Header, error) {
	h := Header{
		JobName: m.JobName, Checkpoint: weir.CheckpointID(m.CheckpointId), Epoch: weir.LeaderEpoch(m.LeaderEpoch),
		Entrypoint: m.Entrypoint, CodeID: m.CodeId, GraphText: m.GraphText,
		Triggered: time.UnixMilli(m.TriggeredAt).UTC(), Completed: time.UnixMilli(m.CompletedAt).UTC(),
	}
	if m.Kind > uint32(weir.TerminateSavepoint) {
		return Header{}, fmt.Errorf("kind %d", m.Kind)
	}
	h.Kind = weir.SnapshotKind(m.Kind)
	if err := fixed(h.Job[:], m.JobId, "job id"); err != nil {
		return Header{}, err
	}
	if err := fixed(h.GraphHash[:], m.GraphHash, "graph hash"); err != nil {
		return Header{}, err
	}
	if len(m.Params) > 0 {
		h.Params = make(map[string]string, len(m.Params))
	}
	for _, p := range m.Params {
		h.Params[p.Key] = p.Value
	}
	for _, mv := range m.Vertices {
		v := Vertex{Name: mv.Name, Parallelism: int(mv.Parallelism), MaxParallelism: int(mv.MaxParallelism)}
		for _, mo := range mv.Operators {
			op := OperatorRef{Name: mo.Name}
			if err := fixed(op.ID[:], mo.Id, "operator id"); err != nil {
				return Header{}, err
			}
			v.Operators = append(v.Operators, op)
		}
		h.Vertices = append(h.Vertices, v)
	}
	for _, k := range m.Hooks {
		h.Hooks = append(h.Hooks, Hook{Name: k.Name, State: k.State})
	}
	return h, checkHeader(&h)
}

func subtaskToPB(op *Operator, sub *Subtask) *snapshotpb.Subtask {
	m := &snapshotpb.Subtask{
		OperatorId: op.ID[:], OperatorName: op.Name, Vertex: int32(op.Vertex), Subtask: sub.Index,
		Finished: sub.Finished,
	}
	for _, e := range sub.State.Elements {
		m.Elements = append(m.Elements, handleToPB(e))
	}
	for _, k := range sub.State.Keyed {
		m.Keyed = append(m.Keyed, &snapshotpb.KeyedState{
			FirstKeyGroup: k.Range.First, LastKeyGroup: k.Range.Last, Backend: k.Backend, Handle: handleToPB(k.Handle),
		})
	}
	for _, s := range sub.State.Schemas {
		m.Schemas = append(m.Schemas, &snapshotpb.Schema{State: s.State, Key: s.Key, Value: s.Value})
	}
	return m
}

func subtaskFromPB(m *snapshotpb.Subtask) (weir.SubtaskID, Subtask, error) {
	id := weir.SubtaskID{Vertex: m.Vertex, Subtask: m.Subtask}
	sub := Subtask{Index: m.Subtask, Finished: m.Finished, State: weir.OperatorSubtaskState{Name: m.OperatorName}}
	if err := fixed(sub.State.Operator[:], m.OperatorId, "operator id"); err != nil {
		return id, sub, err
	}
	for _, e := range m.Elements {
		h, err := handleFromPB(e)
		if err != nil {
			return id, sub, err
		}
		sub.State.Elements = append(sub.State.Elements, h)
	}
	for _, k := range m.Keyed {
		h, err := handleFromPB(k.Handle)
		if err != nil {
			return id, sub, err
		}
		sub.State.Keyed = append(sub.State.Keyed, weir.KeyedStateHandle{
			Range: weir.KeyGroupRange{First: k.FirstKeyGroup, Last: k.LastKeyGroup}, Backend: k.Backend, Handle: h,
		})
	}
	for _, s := range m.Schemas {
		sub.State.Schemas = append(sub.State.Schemas, weir.StateSchema{State: s.State, Key: s.Key, Value: s.Value})
	}
	return id, sub, nil
}

func coordinatorToPB(op *Operator) *snapshotpb.Coordinator {
	return &snapshotpb.Coordinator{OperatorId: op.ID[:], OperatorName: op.Name, State: handleToPB(op.Coordinator)}
}

// handleToPB leaves the zero handle out.
func handleToPB(h weir.StateHandle) *snapshotpb.Handle {
	if h.IsZero() {
		return nil
	}
	if h.File == "" {
		return &snapshotpb.Handle{Inline: h.Inline, Length: int64(len(h.Inline)), Crc32C: h.CRC}
	}
	return &snapshotpb.Handle{File: h.File, Offset: h.Offset, Length: h.Length, Crc32C: h.CRC}
}

// handleFromPB reads what handleToPB writes: an absent handle is the zero one.
func handleFromPB(m *snapshotpb.Handle) (weir.StateHandle, error) {
	if m == nil {
		return weir.StateHandle{}, nil
	}
	h := weir.StateHandle{File: m.File, Offset: m.Offset, Length: m.Length, CRC: m.Crc32C}
	if m.File == "" {
		h.Inline = m.Inline
		if h.Inline == nil {
			h.Inline = []byte{}
		}
	} else if len(m.Inline) > 0 {
		return h, fmt.Errorf("a handle is both inline and in file %q", m.File)
	}
	return h, checkHandle(h)
}

// checkHandle is for writing and for reading.
func checkHandle(h weir.StateHandle) error {
	if h.File == "" {
		if len(h.Inline) > maxInline {
			return fmt.Errorf("an inline handle of %d bytes, at most %d are allowed", len(h.Inline), maxInline)
		}
		if h.Offset != 0 || h.Length != int64(len(h.Inline)) {
			return fmt.Errorf("an inline handle of %d bytes claims offset %d, length %d", len(h.Inline), h.Offset, h.Length)
		}
		return nil
	}
	if strings.Contains(h.File, foreignSeparator) {
		return fmt.Errorf("file %q: %w", h.File, errAbsolute)
	}
	if err := blobstore.CheckName(h.File); err != nil {
		return err
	}
	if h.Offset < 0 || h.Length < 0 || h.Offset+h.Length < 0 {
		return fmt.Errorf("a handle of file %q claims offset %d, length %d", h.File, h.Offset, h.Length)
	}
	return nil
}

// fixed copies bytes whose number must be right.
func fixed(to, from []byte, what string) error {
	if len(from) != len(to) {
		return fmt.Errorf("%s has %d bytes, want %d", what, len(from), len(to))
	}
	copy(to, from)
	return nil
}
