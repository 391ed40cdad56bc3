package snapshotmeta_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore/mem"
	"github.com/weirflow/weir/blobstore/storetest"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/snapshotmeta"
)

var rewrite = flag.Bool("rewrite-golden", false, "write the goldens of the present format version anew")

// golden compares what is written now with what its version wrote first.
func golden(t *testing.T, name string, content []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(content, want) {
		t.Errorf("the format has changed: %s has %d bytes, %d are written now:\n%q", path, len(want), len(content), content)
	}
}

func crc(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

func inline(s string) weir.StateHandle {
	return weir.StateHandle{Inline: []byte(s), Length: int64(len(s)), CRC: crc([]byte(s))}
}

// sample has every kind of part.
func sample() *snapshotmeta.Snapshot {
	numbers, count := weir.OperatorIDOf("numbers"), weir.OperatorIDOf("count")
	s := snapshotmeta.New(snapshotmeta.Header{
		Job: weir.JobID{1, 2, 3}, JobName: "demo", Checkpoint: 7, Kind: weir.Checkpoint, Epoch: 5,
		Entrypoint: "checkpoint-demo", Params: map[string]string{"rate": "2000", "keys": "16", "size": "1000"},
		CodeID: "code", GraphHash: jobgraph.Digest{9, 9}, GraphText: "graph text\n",
		Vertices: []snapshotmeta.Vertex{
			{Name: "numbers", Parallelism: 2, MaxParallelism: 128, Operators: []snapshotmeta.OperatorRef{{ID: numbers, Name: "numbers"}}},
			{Name: "count -> out", Parallelism: 1, MaxParallelism: 128, Operators: []snapshotmeta.OperatorRef{
				{ID: count, Name: "count"}, {ID: weir.OperatorIDOf("out"), Name: "out"}}},
		},
		Triggered: time.UnixMilli(1_700_000_000_123).UTC(), Completed: time.UnixMilli(1_700_000_000_456).UTC(),
	})
	s.Operator(numbers).Coordinator = inline("splits")
	tasks := []struct {
		id    weir.SubtaskID
		state weir.TaskStateSnapshot
	}{
		{weir.SubtaskID{Vertex: 1}, weir.TaskStateSnapshot{Operators: []weir.OperatorSubtaskState{{
			Operator: count, Name: "count",
			Keyed: []weir.KeyedStateHandle{{
				Range: weir.KeyGroupRange{First: 0, Last: 127}, Backend: "heap",
				Handle: weir.StateHandle{File: "chk-7/v1-s0-e5-n1.state", Offset: 12, Length: 5000, CRC: 0xdeadbeef},
			}},
			Schemas: []weir.StateSchema{{State: "count", Key: "string", Value: "int64"}},
		}}}},
		{weir.SubtaskID{Vertex: 0, Subtask: 1}, weir.TaskStateSnapshot{Finished: true, Operators: []weir.OperatorSubtaskState{{Operator: numbers, Name: "numbers"}}}},
		{weir.SubtaskID{Vertex: 0, Subtask: 0}, weir.TaskStateSnapshot{Operators: []weir.OperatorSubtaskState{{
			Operator: numbers, Name: "numbers", Elements: []weir.StateHandle{inline("split 0 at 42"), inline("")},
		}}}},
	}
	for _, task := range tasks {
		if err := s.AddTask(task.id, task.state); err != nil {
			panic(err)
		}
	}
	return s
}

// unaligned is sample with data in flight.
func unaligned() *snapshotmeta.Snapshot {
	s := sample()
	edge := weir.EdgeID{From: "numbers", To: "count"}
	const file = "chk-7/channels-1"
	s.Channels = []weir.ChannelStateHandle{
		{Edge: edge, Side: weir.ConsumerSide, Producer: 0, Handle: weir.StateHandle{File: file, Offset: 8, Length: 100, CRC: 1}},
		{Edge: edge, Side: weir.ProducerSide, Producer: 0, Handle: inline("half a record")},
		{Edge: edge, Side: weir.ProducerSide, Producer: 1, Handle: weir.StateHandle{File: file, Offset: 108, Length: 7, CRC: 2}},
	}
	return s
}

func write(t testing.TB, s *snapshotmeta.Snapshot) []byte {
	t.Helper()
	var buf bytes.Buffer
	if err := snapshotmeta.Write(&buf, s); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func wantIs(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}

func TestSnapshotIsReadAsItWasWritten(t *testing.T) {
	s := sample()
	got, err := snapshotmeta.Read(bytes.NewReader(write(t, s)))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, s) {
		t.Errorf("got  %+v\nwant %+v", got, s)
	}
	if want := int64(len("splits") + len("split 0 at 42") + 5000); got.Bytes() != want {
		t.Errorf("Bytes %d, want %d", got.Bytes(), want)
	}
	op := got.Operator(weir.OperatorIDOf("numbers"))
	if len(op.Subtasks) != 2 || op.Subtasks[0].Index != 0 || !op.Subtasks[1].Finished || op.Parallelism != 2 {
		t.Errorf("operator %+v", op)
	}
	if got.Operator(weir.OperatorIDOf("unknown")) != nil {
		t.Error("an operator that is not there")
	}
}

func TestGoldenOfVersion2(t *testing.T) {
	golden(t, "metadata-v2", write(t, unaligned()))
	b, err := os.ReadFile("testdata/metadata-v2")
	if err != nil {
		t.Fatal(err)
	}
	got, err := snapshotmeta.Read(bytes.NewReader(b))
	if err != nil || !reflect.DeepEqual(got, unaligned()) {
		t.Errorf("version 2 reads as %+v, %v", got, err)
	}
	if n, want := got.Bytes(), sample().Bytes()+100+7+int64(len("half a record")); n != want {
		t.Errorf("%d bytes, want %d", n, want)
	}
}

// A program that knew no in-flight data must not read a snapshot with some.
func TestChannelsNeedVersion2(t *testing.T) {
	b := write(t, unaligned())
	binary.LittleEndian.PutUint32(b[8:], 1)
	_, err := snapshotmeta.Read(bytes.NewReader(b))
	wantIs(t, "channels in version 1", err, snapshotmeta.ErrCorrupt)
}

// Who acknowledged first does not show in the bytes.
func TestChannelsAreSorted(t *testing.T) {
	s := unaligned()
	slices.Reverse(s.Channels)
	if !bytes.Equal(write(t, s), write(t, unaligned())) {
		t.Error("another order gives other bytes")
	}
}

func TestChannelsOfATaskAreItsSnapshots(t *testing.T) {
	s := snapshotmeta.New(sample().Header)
	state := weir.TaskStateSnapshot{Channels: unaligned().Channels}
	if err := s.AddTask(weir.SubtaskID{Vertex: 1}, state); err != nil || !reflect.DeepEqual(s.Channels, state.Channels) {
		t.Errorf("%+v, %v", s.Channels, err)
	}
	var files int
	snapshotmeta.TaskHandles(state, func(h weir.StateHandle) {
		if h.File != "" {
			files++
		}
	})
	if files != 2 {
		t.Errorf("%d handles of files", files)
	}
	for _, c := range snapshotmeta.RebaseChannels(state.Channels, "", "job")[:1] {
		if want := "//job/chk-7/channels-1"; c.Handle.File != want {
			t.Errorf("file %q, want %q", c.Handle.File, want)
		}
	}
}

func TestGoldenOfVersion1(t *testing.T) {
	golden(t, "metadata-v1", write(t, sample()))
	b, err := os.ReadFile("testdata/metadata-v1")
	if err != nil {
		t.Fatal(err)
	}
	got, err := snapshotmeta.Read(bytes.NewReader(b))
	if err != nil || !reflect.DeepEqual(got, sample()) {
		t.Errorf("version 1 reads as %+v, %v", got, err)
	}
}

func TestEveryCutIsFoundAndSaysWhere(t *testing.T) {
	b := write(t, sample())
	for n := range b {
		_, err := snapshotmeta.Read(bytes.NewReader(b[:n]))
		if !errors.Is(err, snapshotmeta.ErrTruncated) || !strings.Contains(err.Error(), fmt.Sprintf("%d bytes", n)) {
			t.Fatalf("cut to %d of %d bytes: %v", n, len(b), err)
		}
	}
}

func TestEveryFlippedBitIsFound(t *testing.T) {
	b := write(t, unaligned())
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			_, err := snapshotmeta.Read(bytes.NewReader(b))
			if err == nil {
				t.Fatalf("bit %d of byte %d flipped: no error", bit, i)
			}
			b[i] ^= 1 << bit
		}
	}
	b[len(b)/2] ^= 0x10
	_, err := snapshotmeta.Read(bytes.NewReader(b))
	wantIs(t, "flipped", err, snapshotmeta.ErrCorrupt)
}

func TestWhatIsNoSnapshotIsSaidToBeNone(t *testing.T) {
	b := write(t, sample())
	newer := bytes.Clone(b)
	binary.LittleEndian.PutUint32(newer[8:], 3)
	zero := bytes.Clone(b)
	binary.LittleEndian.PutUint32(zero[8:], 0)
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"text":          {[]byte("hello, world, this is a text"), snapshotmeta.ErrNotSnapshot},
		"short text":    {[]byte("hi"), snapshotmeta.ErrNotSnapshot},
		"empty":         {nil, snapshotmeta.ErrTruncated},
		"newer version": {newer, snapshotmeta.ErrNewerVersion},
		"version 0":     {zero, snapshotmeta.ErrCorrupt},
		"more bytes":    {append(bytes.Clone(b), 0), snapshotmeta.ErrCorrupt},
		"twice":         {append(bytes.Clone(b), b...), snapshotmeta.ErrCorrupt},
	} {
		_, err := snapshotmeta.Read(bytes.NewReader(c.b))
		wantIs(t, name, err, c.want)
	}
	if _, err := snapshotmeta.Read(io.MultiReader(bytes.NewReader(b[:50]), failingReader{})); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("failing reader: %v", err)
	}
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, io.ErrNoProgress }

func TestLyingLengthTakesNoMemory(t *testing.T) {
	head := binary.LittleEndian.AppendUint32([]byte("WEIRMETA"), 1)
	huge := binary.AppendUvarint(append(bytes.Clone(head), 1), 1<<62)
	_, err := snapshotmeta.Read(bytes.NewReader(huge))
	wantIs(t, "over the limit", err, snapshotmeta.ErrCorrupt)
	// Within the limit, and not there: memory is taken as bytes come in.
	claimed := binary.AppendUvarint(append(bytes.Clone(head), 1), 16<<20)
	used := testing.AllocsPerRun(10, func() { _, err = snapshotmeta.Read(bytes.NewReader(claimed)) })
	wantIs(t, "claimed", err, snapshotmeta.ErrTruncated)
	if used > 50 {
		t.Errorf("%v allocations", used)
	}
}

func TestSnapshotThatContradictsItselfIsNotWritten(t *testing.T) {
	count := weir.OperatorIDOf("count")
	for name, spoil := range map[string]func(s *snapshotmeta.Snapshot){
		"no id":            func(s *snapshotmeta.Snapshot) { s.Header.Checkpoint = 0 },
		"unknown kind":     func(s *snapshotmeta.Snapshot) { s.Header.Kind = 99 },
		"operator missing": func(s *snapshotmeta.Snapshot) { s.Operators = s.Operators[1:] },
		"another operator": func(s *snapshotmeta.Snapshot) { s.Operators[0].ID = count },
		"operator twice":   func(s *snapshotmeta.Snapshot) { s.Header.Vertices[0].Operators[0].ID = count },
		"no parallelism":   func(s *snapshotmeta.Snapshot) { s.Header.Vertices[0].Parallelism = 0 },
		"subtask too high": func(s *snapshotmeta.Snapshot) { s.Operator(count).Subtasks[0].Index = 1 },
		"subtask twice":    func(s *snapshotmeta.Snapshot) { s.Operators[0].Subtasks[1].Index = 0 },
		"key groups": func(s *snapshotmeta.Snapshot) {
			s.Operator(count).Subtasks[0].State.Keyed[0].Range.Last = 128
		},
		"bad file": func(s *snapshotmeta.Snapshot) {
			s.Operator(count).Subtasks[0].State.Keyed[0].Handle.File = "../other/chk-7/x"
		},
		"foreign file": func(s *snapshotmeta.Snapshot) {
			k := &s.Operator(count).Subtasks[0].State.Keyed[0]
			k.Handle = snapshotmeta.Rebase(k.Handle, "/data", "job")
		},
		"negative length":    func(s *snapshotmeta.Snapshot) { s.Operator(count).Subtasks[0].State.Keyed[0].Handle.Length = -1 },
		"inline length":      func(s *snapshotmeta.Snapshot) { s.Operators[0].Coordinator.Length++ },
		"channel twice":      func(s *snapshotmeta.Snapshot) { s.Channels = append(s.Channels, s.Channels[0]) },
		"channel's producer": func(s *snapshotmeta.Snapshot) { s.Channels[0].Producer = 2 },
		"channel's consumer": func(s *snapshotmeta.Snapshot) { s.Channels[0].Consumer = 1 },
		"channel's edge":     func(s *snapshotmeta.Snapshot) { s.Channels[0].Edge.From = "nobody" },
		"channel's input":    func(s *snapshotmeta.Snapshot) { s.Channels[0].Edge.Input = -1 },
		"channel's side":     func(s *snapshotmeta.Snapshot) { s.Channels[0].Side = 2 },
		"channel's handle":   func(s *snapshotmeta.Snapshot) { s.Channels[0].Handle = weir.StateHandle{} },
		"channel's file":     func(s *snapshotmeta.Snapshot) { s.Channels[0].Handle.File = "../x" },
		"no element":         func(s *snapshotmeta.Snapshot) { s.Operators[0].Subtasks[0].State.Elements[0] = weir.StateHandle{} },
	} {
		s := unaligned()
		spoil(s)
		wantIs(t, name, snapshotmeta.Write(io.Discard, s), snapshotmeta.ErrInvalid)
	}
}

func TestTooLargeARecordIsRefused(t *testing.T) {
	s := sample()
	s.Header.GraphText = strings.Repeat("x", 17<<20)
	wantIs(t, "Write", snapshotmeta.Write(io.Discard, s), snapshotmeta.ErrTooLarge)
}

func TestTaskOfAnotherGraphIsRefused(t *testing.T) {
	s := sample()
	op := weir.OperatorSubtaskState{Operator: weir.OperatorIDOf("count"), Name: "count"}
	for name, id := range map[string]weir.SubtaskID{
		"vertex": {Vertex: 0}, "subtask": {Vertex: 1, Subtask: 1}, "negative": {Vertex: 1, Subtask: -1}, "twice": {Vertex: 1},
	} {
		wantIs(t, name, s.AddTask(id, weir.TaskStateSnapshot{Operators: []weir.OperatorSubtaskState{op}}), snapshotmeta.ErrInvalid)
	}
}

func TestFinishedTaskIsNotedUnderAllItsOperators(t *testing.T) {
	s := snapshotmeta.New(sample().Header)
	if err := s.AddTask(weir.SubtaskID{Vertex: 1}, weir.TaskStateSnapshot{Finished: true}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"count", "out"} {
		op := s.Operator(weir.OperatorIDOf(name))
		if len(op.Subtasks) != 1 || !op.Subtasks[0].Finished || op.Subtasks[0].State.Name != name {
			t.Errorf("%s: %+v", name, op.Subtasks)
		}
	}
	wantIs(t, "no such vertex", s.AddTask(weir.SubtaskID{Vertex: 7}, weir.TaskStateSnapshot{Finished: true}), snapshotmeta.ErrInvalid)
}

func TestOpenFindsTheSnapshotByDirectoryOrFile(t *testing.T) {
	store := mem.New()
	name := snapshotmeta.MetadataName(weir.JobID{1, 2, 3}, 7)
	storetest.Put(t, store, name, write(t, sample()))
	for _, path := range []string{name, strings.TrimSuffix(name, "/_metadata")} {
		got, err := snapshotmeta.Open(t.Context(), store, path)
		if err != nil || got.Header.Checkpoint != 7 {
			t.Errorf("Open(%q): %v", path, err)
		}
	}
	_, err := snapshotmeta.Open(t.Context(), store, "nothing/chk-1")
	wantIs(t, "Open", err, snapshotmeta.ErrNotFound)
	store.Corrupt("job/chk-1/_metadata", []byte("WEIRMETA\x01\x00\x00\x00\x01\xff"))
	_, err = snapshotmeta.Open(t.Context(), store, "job/chk-1")
	if !errors.Is(err, snapshotmeta.ErrTruncated) || !strings.Contains(err.Error(), "job/chk-1/_metadata") {
		t.Errorf("Open of a cut one: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	b := write(f, sample())
	f.Add(b)
	f.Add(write(f, unaligned()))
	f.Add(b[:len(b)/2])
	f.Add([]byte("WEIRMETA\x01\x00\x00\x00\x01\xff\xff\xff\x7f"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := snapshotmeta.Read(bytes.NewReader(b))
		if err != nil {
			return
		}
		// What can be read can be written, and says the same.
		again, err := snapshotmeta.Read(bytes.NewReader(write(t, s)))
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Errorf("read again: %+v, %v; want %+v", again, err, s)
		}
	})
}

// FuzzReadPatched repairs the checksum, so that what comes after it is reached.
func FuzzReadPatched(f *testing.F) {
	b := write(f, sample())
	f.Add(b[:len(b)-4])
	c := write(f, unaligned())
	f.Add(c[:len(c)-4])
	f.Fuzz(func(t *testing.T, b []byte) {
		b = binary.LittleEndian.AppendUint32(bytes.Clone(b), crc(b))
		s, err := snapshotmeta.Read(bytes.NewReader(b))
		if err != nil {
			return
		}
		if again, err := snapshotmeta.Read(bytes.NewReader(write(t, s))); err != nil || !reflect.DeepEqual(again, s) {
			t.Errorf("read again: %+v, %v; want %+v", again, err, s)
		}
	})
}
