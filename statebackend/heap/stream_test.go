package heap

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/statebackend"
)

var updateGolden = flag.Bool("update-golden", false, "write testdata/stream_v1.hex; a published version must never change")

func refOf(key, namespace string) statebackend.Ref {
	return statebackend.Ref{Hash: xxh3.HashString(key), Key: []byte(key), Namespace: []byte(namespace)}
}

func newTestBackend(t testing.TB, pool *PagePool, maxParallelism int, kg weir.KeyGroupRange) *Backend {
	t.Helper()
	b, err := NewFactory(pool).New(statebackend.Options{MaxParallelism: maxParallelism, KeyGroups: kg})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, tab := range b.(*Backend).tables {
			if b.(*Backend).closed {
				break
			}
			for i := range tab.groups {
				tab.groups[i].check(tab)
			}
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b.(*Backend)
}

func tableOf(t testing.TB, b *Backend, name string, fixedSize int) *PageTable {
	t.Helper()
	tab, err := b.Table(statebackend.Descriptor{Name: name, FixedSize: fixedSize, Schema: weir.StateSchema{Key: "string", Value: "v-" + name}})
	if err != nil {
		t.Fatal(err)
	}
	return tab.(*PageTable)
}

func streamOf(t testing.TB, b *Backend) []byte {
	t.Helper()
	s, err := b.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release()
	var buf bytes.Buffer
	if _, err := s.Write(context.Background(), &buf); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func restoreInto(b *Backend, kg weir.KeyGroupRange, stream []byte) error {
	h := weir.KeyedStateHandle{Range: kg, Backend: Name, Handle: weir.StateHandle{Inline: stream}}
	return b.Restore(context.Background(), []weir.KeyedStateHandle{h}, func(context.Context, weir.StateHandle) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(stream)), nil
	})
}

// fillGolden makes the state whose stream is the golden file: every kind of entry,
// some of them dead or outgrown, some in a page of their own.
func fillGolden(t testing.TB, b *Backend) {
	t.Helper()
	count, text := tableOf(t, b, "count", 12), tableOf(t, b, "text", 0)
	for i := range 5 {
		v, _ := count.Slot(refOf(fmt.Sprint("key-", i), ""), statebackend.Hint{})
		binary.LittleEndian.PutUint32(v, uint32(i))
		text.Put(refOf(fmt.Sprint("key-", i), "w"), statebackend.Hint{}, []byte(strings.Repeat("v", i)))
	}
	text.Put(refOf("key-4", "w"), statebackend.Hint{}, []byte("a value that outgrew its room"))
	text.Put(refOf("large", ""), statebackend.Hint{}, bytes.Repeat([]byte("large "), 700))
	count.Delete(refOf("key-2", ""))
}

const goldenFile = "testdata/stream_v1.hex"

func readGolden(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	for line := range strings.Lines(string(text)) {
		b, err := hex.DecodeString(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
	}
	return all
}

func TestGoldenStreamVersion1(t *testing.T) {
	t.Parallel()
	kg := weir.KeyGroupRange{First: 0, Last: 3}
	pool := NewPagePool(1 << 20)
	pages := pool.take(nil, 1)
	for range 10 { // what recycled pages held must not show
		pages = pool.take(pages, 1)
	}
	for _, p := range pages {
		for i := range p.b {
			p.b[i] = 0xee
		}
	}
	pool.give(pages)
	b := newTestBackend(t, pool, 4, kg)
	fillGolden(t, b)
	got := streamOf(t, b)
	if *updateGolden {
		var text strings.Builder
		for line := range chunks(got, 32) {
			text.WriteString(hex.EncodeToString(line) + "\n")
		}
		if err := os.WriteFile(goldenFile, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := readGolden(t)
	if !bytes.Equal(got, want) {
		t.Errorf("version 1 is written differently:\n%s\nwant\n%s", hex.Dump(got), hex.Dump(want))
	}
	back := newTestBackend(t, pool, 4, kg)
	if err := restoreInto(back, kg, want); err != nil {
		t.Fatal(err)
	}
	count, text := tableOf(t, back, "count", 12), tableOf(t, back, "text", 0)
	if v, ok := text.Get(refOf("key-4", "w"), statebackend.Hint{}); !ok || string(v) != "a value that outgrew its room" {
		t.Errorf("text of key-4: %q", v)
	}
	if v, ok := count.Get(refOf("key-3", ""), statebackend.Hint{}); !ok || !bytes.Equal(v, []byte{3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}) {
		t.Errorf("count of key-3: %v", v)
	}
	if count.Len() != 4 || text.Len() != 6 {
		t.Errorf("%d and %d entries, want 4 and 6", count.Len(), text.Len())
	}
}

func chunks(b []byte, n int) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(b) > 0 && yield(b[:min(n, len(b))]) {
			b = b[min(n, len(b)):]
		}
	}
}

// framed puts a payload into chunks with right checksums.
func framed(payload []byte) []byte {
	out := binary.LittleEndian.AppendUint32([]byte(streamMagic), streamVersion)
	for c := range chunks(payload, maxChunk) {
		out = binary.LittleEndian.AppendUint32(out, uint32(len(c)))
		out = binary.LittleEndian.AppendUint32(out, crc32.Checksum(c, castagnoli))
		out = append(out, c...)
	}
	return append(out, 0, 0, 0, 0, 0, 0, 0, 0)
}

// payloadOf takes the payload out of a stream.
func payloadOf(t testing.TB, stream []byte) []byte {
	t.Helper()
	in, err := newStreamReader(bytes.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	for !in.ended {
		if err := in.next(); err != nil {
			t.Fatal(err)
		}
		all = append(all, in.chunk...)
	}
	return all
}

// Nobody can cut a stream so that chunks end elsewhere and fool the reader.
func TestChunksMayEndAnywhere(t *testing.T) {
	t.Parallel()
	kg := weir.KeyGroupRange{First: 0, Last: 3}
	pool := NewPagePool(1 << 20)
	b := newTestBackend(t, pool, 4, kg)
	fillGolden(t, b)
	stream := streamOf(t, b)
	payload := payloadOf(t, stream)
	if !bytes.Equal(framed(payload), stream) {
		t.Fatal("the writer frames differently")
	}
	for _, n := range []int{1, 3, 7, 100} {
		cut := binary.LittleEndian.AppendUint32([]byte(streamMagic), streamVersion)
		for c := range chunks(payload, n) {
			cut = binary.LittleEndian.AppendUint32(cut, uint32(len(c)))
			cut = binary.LittleEndian.AppendUint32(cut, crc32.Checksum(c, castagnoli))
			cut = append(cut, c...)
		}
		cut = append(cut, make([]byte, chunkHeader)...)
		back := newTestBackend(t, pool, 4, kg)
		if err := restoreInto(back, kg, cut); err != nil {
			t.Fatalf("chunks of %d bytes: %v", n, err)
		}
		tableOf(t, back, "count", 12)
		tableOf(t, back, "text", 0)
		if got := streamOf(t, back); len(got) != len(stream) {
			t.Errorf("chunks of %d bytes: restored state has a stream of %d bytes, want %d", n, len(got), len(stream))
		}
	}
}

func TestStreamsOfMoreThanOneChunk(t *testing.T) {
	t.Parallel()
	pool := NewPagePool(1 << 20)
	b := newTestBackend(t, pool, 1, weir.KeyGroupRange{})
	text := tableOf(t, b, "text", 0)
	for i := range 30 {
		text.Put(refOf(fmt.Sprint(i), ""), statebackend.Hint{}, bytes.Repeat([]byte{byte(i)}, i*10_000))
	}
	stream := streamOf(t, b)
	back := newTestBackend(t, pool, 1, weir.KeyGroupRange{})
	if err := restoreInto(back, weir.KeyGroupRange{}, stream); err != nil {
		t.Fatal(err)
	}
	text = tableOf(t, back, "text", 0)
	for i := range 30 {
		if v, _ := text.Get(refOf(fmt.Sprint(i), ""), statebackend.Hint{}); !bytes.Equal(v, bytes.Repeat([]byte{byte(i)}, i*10_000)) {
			t.Fatalf("value %d has %d bytes", i, len(v))
		}
	}
}

// Lengths that are only claimed take no memory.
func TestClaimedLengthsTakeNoMemory(t *testing.T) {
	kg := weir.KeyGroupRange{}
	pool := NewPagePool(1 << 20)
	b := newTestBackend(t, pool, 1, kg)
	tableOf(t, b, "text", 0).Put(refOf("a", ""), statebackend.Hint{}, []byte("value"))
	payload := payloadOf(t, streamOf(t, b))
	end := len(payload) - 4 - 4 // the end of the section and of the stream
	run := bytes.Clone(payload[:end])
	binary.LittleEndian.PutUint32(run[end-len("avalue")-2-variableHeader-4:], 1<<30)
	chunk := append(framed(nil)[:streamStart], 0, 0, 16, 0, 1, 2, 3, 4) // 1 MiB that does not follow
	for want, stream := range map[string][]byte{"ends inside of a section": framed(run), "cut short": chunk} {
		var before, after runtime.MemStats
		back := newTestBackend(t, pool, 1, kg)
		runtime.ReadMemStats(&before)
		err := restoreInto(back, kg, stream)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, statebackend.ErrCorrupt) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if taken := after.TotalAlloc - before.TotalAlloc; taken > 1<<20 {
			t.Errorf("%s: %d bytes were allocated", want, taken)
		}
	}
}

func TestKeyGroupOfTwoSectionsIsRefused(t *testing.T) {
	t.Parallel()
	kg := weir.KeyGroupRange{}
	pool := NewPagePool(1 << 20)
	var streams [2][]byte
	for i := range streams {
		b := newTestBackend(t, pool, 1, kg)
		tableOf(t, b, "text", 0).Put(refOf(fmt.Sprint("key", i), ""), statebackend.Hint{}, []byte("value"))
		streams[i] = streamOf(t, b)
	}
	back := newTestBackend(t, pool, 1, kg)
	if err := restoreInto(back, kg, streams[0]); err != nil {
		t.Fatal(err)
	}
	if err := restoreInto(back, kg, streams[1]); !errors.Is(err, statebackend.ErrCorrupt) {
		t.Errorf("got %v", err)
	}
}

// FuzzStream reads random bytes; FuzzPayload gets past the checksums.
func FuzzStream(f *testing.F) {
	f.Add(readGolden(f))
	f.Add(framed(nil))
	f.Fuzz(fuzzRestore)
}

func FuzzPayload(f *testing.F) {
	f.Add(payloadOf(f, readGolden(f)))
	f.Fuzz(func(t *testing.T, payload []byte) { fuzzRestore(t, framed(payload)) })
}

func fuzzRestore(t *testing.T, stream []byte) {
	kg := weir.KeyGroupRange{First: 1, Last: 3}
	pool := NewPagePool(1 << 20)
	b := newTestBackend(t, pool, 4, kg)
	err := restoreInto(b, weir.KeyGroupRange{First: 0, Last: 3}, stream)
	if err == nil { // then it is state like any other
		again := newTestBackend(t, pool, 4, kg)
		if err := restoreInto(again, kg, streamOf(t, b)); err != nil {
			t.Fatalf("what was restored cannot be restored again: %v", err)
		}
		if got, want := again.Stats().Entries, b.Stats().Entries; got != want {
			t.Fatalf("%d entries, want %d", got, want)
		}
		return
	}
	if !errors.Is(err, statebackend.ErrCorrupt) && !errors.Is(err, statebackend.ErrUnsupported) && !errors.Is(err, statebackend.ErrMaxParallelism) {
		t.Fatalf("error of no class: %v", err)
	}
}
