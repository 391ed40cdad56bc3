package snapshotmeta_test

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore/mem"
	"github.com/weirflow/weir/blobstore/storetest"
	"github.com/weirflow/weir/snapshotmeta"
)

type chunk struct {
	base int64
	b    string
}

// channelState is the bytes of a handle with these chunks.
func channelState(t testing.TB, chunks ...chunk) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := snapshotmeta.NewChannelStateWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range chunks {
		if err := w.Chunk(c.base, []byte(c.b)); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// readChunks reads a handle to its end or first error.
func readChunks(t testing.TB, f snapshotmeta.Files, h weir.StateHandle) (chunks []chunk, err error) {
	t.Helper()
	r, err := f.OpenChannelState(t.Context(), h)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for {
		base, b, err := r.Next()
		if err == io.EOF {
			return chunks, nil
		}
		if err != nil {
			return chunks, err
		}
		chunks = append(chunks, chunk{base, string(b)})
	}
}

func inlineBytes(b []byte) weir.StateHandle {
	return weir.StateHandle{Inline: b, Length: int64(len(b)), CRC: crc(b)}
}

func TestChannelStateInAFile(t *testing.T) {
	store := mem.New()
	o := options(store, 0)
	o.Name = snapshotmeta.ChannelFileName(o.Location, o.Attempt)
	w := snapshotmeta.NewStateFileWriter(o)
	want := [][]chunk{{{5, "half"}, {-7, " record"}}, {{0, strings.Repeat("x", 100)}}, nil}
	var handles []weir.StateHandle
	for _, chunks := range want {
		if err := w.Begin(t.Context(), "channel"); err != nil {
			t.Fatal(err)
		}
		c, err := snapshotmeta.NewChannelStateWriter(w)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range chunks {
			if err := c.Chunk(x.base, []byte(x.b)); err != nil {
				t.Fatal(err)
			}
		}
		h, err := w.End()
		if err != nil {
			t.Fatal(err)
		}
		handles = append(handles, h)
	}
	if err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := storetest.Names(t, store, ""); !reflect.DeepEqual(got, []string{"job/chk-7/v2-s0-e5-n1.channels"}) {
		t.Errorf("files %v", got)
	}
	for i, h := range handles {
		got, err := readChunks(t, snapshotmeta.Files{Store: store, Dir: "job"}, h)
		if err != nil || !reflect.DeepEqual(got, want[i]) {
			t.Errorf("channel %d: got %v, %v; want %v", i, got, err, want[i])
		}
	}
}

func TestLargeChunksAreSplit(t *testing.T) {
	b := strings.Repeat("0123456789abcdef", 1<<17) // 2 MiB
	got, err := readChunks(t, snapshotmeta.Files{}, inlineBytes(channelState(t, chunk{9, b + "x"})))
	if err != nil || len(got) != 3 {
		t.Fatalf("%d chunks, %v", len(got), err)
	}
	var all strings.Builder
	for _, c := range got {
		all.WriteString(c.b)
		if c.base != 9 {
			t.Errorf("base %d", c.base)
		}
	}
	if all.String() != b+"x" {
		t.Error("other bytes")
	}
}

func TestGoldenOfChannelStateVersion1(t *testing.T) {
	chunks := []chunk{{1_700_000_000_000, "some elements"}, {-1, "the rest"}}
	b := channelState(t, chunks...)
	golden(t, "channel-v1", b)
	got, err := readChunks(t, snapshotmeta.Files{}, inlineBytes(b))
	if err != nil || !reflect.DeepEqual(got, chunks) {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestDamagedChannelStateIsFound cuts and flips every byte: no chunk is given out that
// was not written, and the end is never reached.
func TestDamagedChannelStateIsFound(t *testing.T) {
	chunks := []chunk{{1, "some elements"}, {2, "the rest"}}
	b := channelState(t, chunks...)
	h := inlineBytes(b)
	check := func(what string, at int, damaged []byte, want ...error) {
		t.Helper()
		h := h
		h.Inline = damaged
		got, err := readChunks(t, snapshotmeta.Files{}, h)
		found := false
		for _, w := range want {
			found = found || errors.Is(err, w)
		}
		if !found {
			t.Errorf("%s at %d: %v", what, at, err)
		}
		for i, c := range got {
			if c != chunks[i] {
				t.Errorf("%s at %d: chunk %q", what, at, c.b)
			}
		}
	}
	for n := range b {
		check("cut", n, b[:n], snapshotmeta.ErrTruncated, snapshotmeta.ErrCorrupt)
		flipped := bytes.Clone(b)
		flipped[n] ^= 1
		check("flip", n, flipped, snapshotmeta.ErrCorrupt, snapshotmeta.ErrNotSnapshot, snapshotmeta.ErrNewerVersion, snapshotmeta.ErrTruncated)
	}
	newer := bytes.Clone(b)
	newer[8] = 2
	check("version", 8, newer, snapshotmeta.ErrNewerVersion)
	huge := bytes.Clone(b)
	copy(huge[12:], "\xff\xff\xff\xff")
	check("length", 12, huge, snapshotmeta.ErrCorrupt)
}

// FuzzChannelState reads arbitrary bytes: chunks that were written come back as they
// were, and no length is believed.
func FuzzChannelState(f *testing.F) {
	f.Add(channelState(f, chunk{1, "a"}, chunk{-2, "bc"}))
	f.Add(channelState(f))
	f.Add([]byte("WEIRCHAN\x01\x00\x00\x00\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		chunks, err := readChunks(t, snapshotmeta.Files{}, inlineBytes(b))
		if err != nil {
			return
		}
		if again := channelState(t, chunks...); !bytes.Equal(again, b) {
			t.Errorf("%q was read as %v", b, chunks)
		}
	})
}
