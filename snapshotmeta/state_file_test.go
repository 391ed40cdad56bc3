package snapshotmeta_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/blobstore/faulty"
	"github.com/weirflow/weir/blobstore/mem"
	"github.com/weirflow/weir/blobstore/storetest"
	"github.com/weirflow/weir/snapshotmeta"
)

var attempt = weir.AttemptID{Job: weir.JobID{1}, Vertex: 2, Subtask: 0, Epoch: 5, N: 1}

const stateFile = "job/chk-7/v2-s0-e5-n1.state"

func options(store blobstore.Store, threshold int) snapshotmeta.StateFileOptions {
	return snapshotmeta.StateFileOptions{
		Store: store, Dir: "job", Location: snapshotmeta.Dir(7), Attempt: attempt, Checkpoint: 7, InlineThreshold: threshold,
	}
}

// section writes one section in pieces.
func section(t testing.TB, w *snapshotmeta.StateFileWriter, label string, content string) weir.StateHandle {
	t.Helper()
	if err := w.Begin(t.Context(), label); err != nil {
		t.Fatal(err)
	}
	for rest := content; len(rest) > 0; {
		n := min(len(rest), 7)
		if _, err := io.WriteString(w, rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	h, err := w.End()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func readHandle(t testing.TB, store blobstore.Store, h weir.StateHandle) string {
	t.Helper()
	r, err := snapshotmeta.OpenHandle(t.Context(), store, "job", h)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestSmallStateIsInlineAndMakesNoFile(t *testing.T) {
	store := mem.New()
	w := snapshotmeta.NewStateFileWriter(options(store, 20))
	a, b, c := section(t, w, "a", "0123456789"), section(t, w, "b", ""), section(t, w, "c", "abcdefghij")
	if err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(storetest.Names(t, store, "")) != 0 || w.Bytes() != 20 {
		t.Errorf("files %v, %d bytes", storetest.Names(t, store, ""), w.Bytes())
	}
	for h, want := range map[*weir.StateHandle]string{&a: "0123456789", &b: "", &c: "abcdefghij"} {
		if h.IsZero() || h.File != "" || readHandle(t, store, *h) != want {
			t.Errorf("handle %+v, want %q", h, want)
		}
	}
}

func TestThresholdIsOfAllSectionsTogether(t *testing.T) {
	store := mem.New()
	w := snapshotmeta.NewStateFileWriter(options(store, 20))
	contents := []string{"0123456789", "abcdefghijk", "klmnopqrst", "x"}
	handles := make([]weir.StateHandle, len(contents))
	for i, c := range contents {
		handles[i] = section(t, w, "s", c)
	}
	if err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, inFile := range []bool{false, true, false, true} {
		if (handles[i].File != "") != inFile || readHandle(t, store, handles[i]) != contents[i] {
			t.Errorf("section %d: %+v", i, handles[i])
		}
	}
	if got := storetest.Names(t, store, ""); !reflect.DeepEqual(got, []string{stateFile}) {
		t.Errorf("files %v", got)
	}
	if handles[1].File != "chk-7/v2-s0-e5-n1.state" {
		t.Errorf("file %q", handles[1].File)
	}
}

// sampleFile writes two sections to a file and returns its bytes.
func sampleFile(t testing.TB) ([]byte, []weir.StateHandle) {
	store := mem.New()
	w := snapshotmeta.NewStateFileWriter(options(store, 0))
	handles := []weir.StateHandle{section(t, w, "count/keyed", "some keyed state"), section(t, w, "empty", ""), section(t, w, "count/elements", "element")}
	if err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	return storetest.Get(t, store, stateFile), handles
}

func TestGoldenOfStateFileVersion1(t *testing.T) {
	b, handles := sampleFile(t)
	golden(t, "state-v1", b)
	store := mem.New()
	store.Corrupt("f", b)
	c, err := snapshotmeta.ReadContents(t.Context(), store, "f")
	if err != nil {
		t.Fatal(err)
	}
	want := snapshotmeta.Contents{Attempt: attempt, Checkpoint: 7}
	keyed, elements := handles[0], handles[2] // the empty one is inline
	keyed.File, elements.File = "", ""
	want.Sections = []snapshotmeta.Section{{Label: "count/keyed", Handle: keyed}, {Label: "count/elements", Handle: elements}}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
}

func TestDamagedStateFileIsFound(t *testing.T) {
	b, _ := sampleFile(t)
	store := mem.New()
	for n := range b {
		store.Corrupt("f", b[:n])
		if _, err := snapshotmeta.ReadContents(t.Context(), store, "f"); !errors.Is(err, snapshotmeta.ErrTruncated) {
			t.Fatalf("cut to %d bytes: %v", n, err)
		}
	}
	sections := len("some keyed state") + len("element")
	for i := range b {
		if i >= 12 && i < 12+sections {
			continue // covered by the handles' checksums
		}
		b[i] ^= 1
		store.Corrupt("f", b)
		if _, err := snapshotmeta.ReadContents(t.Context(), store, "f"); err == nil {
			t.Fatalf("byte %d flipped: no error", i)
		}
		b[i] ^= 1
	}
	_, err := snapshotmeta.ReadContents(t.Context(), store, "absent")
	wantIs(t, "absent", err, blobstore.ErrNotFound)
	newer := bytes.Clone(b)
	binary.LittleEndian.PutUint32(newer[8:], 2)
	store.Corrupt("f", newer)
	_, err = snapshotmeta.ReadContents(t.Context(), store, "f")
	wantIs(t, "newer", err, snapshotmeta.ErrNewerVersion)
	store.Corrupt("f", []byte("this is not a state file at all, but it is long enough"))
	_, err = snapshotmeta.ReadContents(t.Context(), store, "f")
	wantIs(t, "text", err, snapshotmeta.ErrNotSnapshot)
}

func TestDamagedHandleIsFoundWhenItIsRead(t *testing.T) {
	b, handles := sampleFile(t)
	store := mem.New()
	read := func(h weir.StateHandle) error {
		r, err := snapshotmeta.OpenHandle(t.Context(), store, "job", h)
		if err != nil {
			return err
		}
		defer r.Close()
		_, err = io.Copy(io.Discard, r)
		return err
	}
	store.Corrupt(stateFile, b)
	if err := read(handles[0]); err != nil {
		t.Fatal(err)
	}
	b[14] ^= 1
	store.Corrupt(stateFile, b)
	wantIs(t, "flipped", read(handles[0]), snapshotmeta.ErrCorrupt)
	store.Corrupt(stateFile, b[:20])
	wantIs(t, "cut", read(handles[0]), snapshotmeta.ErrTruncated)
	long := inline("abc")
	long.Inline = append(long.Inline, 'd')
	if err := read(long); err == nil {
		t.Error("inline bytes that are not those of the checksum: want an error")
	}
	wantIs(t, "absent", read(weir.StateHandle{File: "chk-7/absent", Length: 1}), blobstore.ErrNotFound)
	wantIs(t, "path trick", read(weir.StateHandle{File: "../../x", Length: 1}), blobstore.ErrBadName)
}

func TestForeignHandlesAreOpenedInTheirStore(t *testing.T) {
	b, handles := sampleFile(t)
	own, foreign := mem.New(), mem.New()
	foreign.Corrupt("other/chk-7/v2-s0-e5-n1.state", b)
	own.Corrupt("here/chk-7/v2-s0-e5-n1.state", b)
	state := weir.OperatorSubtaskState{
		Keyed:    []weir.KeyedStateHandle{{Handle: handles[0]}},
		Elements: []weir.StateHandle{handles[2], inline("x")},
	}
	files := snapshotmeta.Files{Store: own, Dir: "mine", Foreign: func(location string) (blobstore.Store, error) {
		if location != "/data/ck" {
			return nil, errors.New("not mounted")
		}
		return foreign, nil
	}}
	read := func(f snapshotmeta.Files, h weir.StateHandle) (string, error) {
		r, err := f.Open(t.Context(), h)
		if err != nil {
			return "", err
		}
		defer r.Close()
		b, err := io.ReadAll(r)
		return string(b), err
	}
	for location, dir := range map[string]string{"/data/ck": "other", own.Location(): "here", "": "here"} {
		moved := snapshotmeta.RebaseState(state, location, dir)
		for h, want := range map[*weir.StateHandle]string{&moved.Keyed[0].Handle: "some keyed state", &moved.Elements[0]: "element", &moved.Elements[1]: "x"} {
			if got, err := read(files, *h); err != nil || got != want {
				t.Errorf("%+v: %q, %v", h, got, err)
			}
		}
		if again := snapshotmeta.RebaseState(moved, "/elsewhere", "else"); !reflect.DeepEqual(again, moved) {
			t.Errorf("rebased twice: %+v", again)
		}
	}
	if state.Keyed[0].Handle.File != handles[0].File {
		t.Error("RebaseState changed its argument")
	}
	_, err := read(files, snapshotmeta.Rebase(handles[0], "/else", "other"))
	wantIs(t, "store that cannot be opened", err, snapshotmeta.ErrForeign)
	_, err = read(snapshotmeta.Files{Store: own}, snapshotmeta.Rebase(handles[0], "/data/ck", "other"))
	wantIs(t, "no foreign stores", err, snapshotmeta.ErrForeign)
}

func TestSplitLocation(t *testing.T) {
	for path, want := range map[string][2]string{
		"/data/ck/job/chk-9":           {"/data/ck", "job/chk-9/_metadata"},
		"/data/ck/job/chk-9/":          {"/data/ck", "job/chk-9/_metadata"},
		"/data/ck/job/chk-9/_metadata": {"/data/ck", "job/chk-9/_metadata"},
		"/job/chk-9":                   {"/", "job/chk-9/_metadata"},
		"ck/job/chk-9":                 {"ck", "job/chk-9/_metadata"},
	} {
		location, name, err := snapshotmeta.SplitLocation(path)
		if err != nil || location != want[0] || name != want[1] {
			t.Errorf("%q: %q, %q, %v", path, location, name, err)
		}
	}
	for _, path := range []string{"", "/", "chk-9", "job/chk-9", "_metadata", "/chk-9", "/a/../chk-9"} {
		if location, name, err := snapshotmeta.SplitLocation(path); !errors.Is(err, snapshotmeta.ErrNotFound) {
			t.Errorf("%q: %q, %q, %v", path, location, name, err)
		}
	}
}

func TestFailingStoreFailsTheWriterForGood(t *testing.T) {
	for _, op := range []faulty.Op{faulty.Create, faulty.Write, faulty.Commit} {
		inner := mem.New()
		store := faulty.New(inner, faulty.Hook{Before: func(_ context.Context, o faulty.Op, _ string) error {
			if o == op {
				return io.ErrClosedPipe
			}
			return nil
		}})
		w := snapshotmeta.NewStateFileWriter(options(store, 0))
		err := w.Begin(t.Context(), "s")
		if err == nil {
			_, err = io.WriteString(w, strings.Repeat("x", 200_000))
		}
		if err == nil {
			_, err = w.End()
		}
		if err == nil {
			err = w.Commit(t.Context())
		}
		wantIs(t, string(op), err, io.ErrClosedPipe)
		wantIs(t, "Begin after it", w.Begin(t.Context(), "s"), io.ErrClosedPipe)
		w.Abort()
		if got := storetest.Names(t, inner, ""); len(got) != 0 {
			t.Errorf("%s: left %v", op, got)
		}
	}
}

func TestMisuseAndAbort(t *testing.T) {
	store := mem.New()
	w := snapshotmeta.NewStateFileWriter(options(store, 0))
	if _, err := w.Write([]byte("x")); err == nil {
		t.Error("Write outside a section: want an error")
	}
	if _, err := w.End(); err == nil {
		t.Error("End outside a section: want an error")
	}
	if err := w.Begin(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if err := w.Begin(t.Context(), "b"); err == nil {
		t.Error("Begin in a section: want an error")
	}
	if err := w.Commit(t.Context()); err == nil {
		t.Error("Commit in a section: want an error")
	}
	if _, err := w.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	w.Abort()
	w.Abort()
	if err := w.Commit(t.Context()); err == nil {
		t.Error("Commit after Abort: want an error")
	}
	if got := storetest.Names(t, store, ""); len(got) != 0 {
		t.Errorf("left %v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantIs(t, "Begin", snapshotmeta.NewStateFileWriter(options(store, 0)).Begin(ctx, "s"), context.Canceled)
}

func TestNameIsNotUsedTwice(t *testing.T) {
	store := mem.New()
	first := snapshotmeta.NewStateFileWriter(options(store, 0))
	section(t, first, "s", "x")
	if err := first.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := snapshotmeta.NewStateFileWriter(options(store, 0))
	if err := again.Begin(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	_, err := again.Write([]byte("y"))
	wantIs(t, "Write", err, blobstore.ErrExists)
}

func FuzzReadContents(f *testing.F) {
	b, _ := sampleFile(f)
	f.Add(b)
	f.Add(b[12:])
	f.Fuzz(func(t *testing.T, b []byte) {
		store := mem.New()
		store.Corrupt("f", b)
		c, err := snapshotmeta.ReadContents(t.Context(), store, "f")
		if err != nil {
			return
		}
		var sum int64
		for _, s := range c.Sections {
			sum += s.Handle.Length
		}
		if sum < 0 || sum > int64(len(b)) {
			t.Errorf("sections have %d bytes in a file of %d", sum, len(b))
		}
	})
}
