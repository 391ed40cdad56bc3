package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/internal/group"
)

// Run runs the suite. open returns an empty store, and the same store as another
// process sees it.
func Run(t *testing.T, open func(t *testing.T) (store, other blobstore.Store)) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, s, other blobstore.Store)
	}{
		{"committed_blob_is_read_whole_and_in_ranges", readBack},
		{"uncommitted_blob_is_invisible", uncommitted},
		{"finished_writer_refuses_more", finished},
		{"existing_name_is_not_overwritten", exclusive},
		{"of_many_creators_one_succeeds", race},
		{"list_is_in_order_of_names_and_by_prefix", list},
		{"list_stops_at_an_error", listStops},
		{"delete_removes_one_blob", remove},
		{"absent_blob_is_not_found", absent},
		{"bad_names_are_refused", badNames},
		{"ended_context_is_an_error", ended},
		{"empty_and_large_blobs", sizes},
		{"create_races_with_deletes_in_its_directory", createWhileDeleting},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, other := open(t)
			c.test(t, s, other)
		})
	}
}

// Put writes a blob and fails the test if it cannot.
func Put(t testing.TB, s blobstore.Store, name string, content []byte) {
	t.Helper()
	if err := put(t.Context(), s, name, content); err != nil {
		t.Fatalf("put %s: %v", name, err)
	}
}

// Get reads a blob and fails the test if it cannot.
func Get(t testing.TB, s blobstore.Store, name string) []byte {
	t.Helper()
	b, err := get(t.Context(), s, name, 0, -1)
	if err != nil {
		t.Fatalf("get %s: %v", name, err)
	}
	return b
}

// Names returns the names of all blobs with the prefix.
func Names(t testing.TB, s blobstore.Store, prefix string) []string {
	t.Helper()
	names := []string{}
	err := s.List(t.Context(), prefix, func(i blobstore.Info) error {
		names = append(names, i.Name)
		return nil
	})
	if err != nil {
		t.Fatalf("list %q: %v", prefix, err)
	}
	return names
}

func put(ctx context.Context, s blobstore.Store, name string, content []byte) error {
	w, err := s.Create(ctx, name)
	if err != nil {
		return err
	}
	defer w.Abort()
	if _, err := w.Write(content); err != nil {
		return err
	}
	return w.Commit(ctx)
}

func get(ctx context.Context, s blobstore.Store, name string, offset, length int64) ([]byte, error) {
	r, err := s.Open(ctx, name, offset, length)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(r)
	if cerr := r.Close(); err == nil {
		err = cerr
	}
	return b, err
}

func wantIs(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}

func readBack(t *testing.T, s, other blobstore.Store) {
	Put(t, s, "job/chk-1/file", []byte("0123456789"))
	for _, c := range []struct {
		offset, length int64
		want           string
	}{
		{0, -1, "0123456789"}, {3, -1, "3456789"}, {3, 4, "3456"}, {0, 0, ""}, {8, 100, "89"}, {10, -1, ""}, {11, 1, ""},
	} {
		got, err := get(t.Context(), other, "job/chk-1/file", c.offset, c.length)
		if err != nil || string(got) != c.want {
			t.Errorf("offset %d length %d: %q, %v; want %q", c.offset, c.length, got, err, c.want)
		}
	}
	if _, err := s.Open(t.Context(), "job/chk-1/file", -1, 5); err == nil {
		t.Error("negative offset: want an error")
	}
	info, err := other.Stat(t.Context(), "job/chk-1/file")
	if err != nil || info.Name != "job/chk-1/file" || info.Size != 10 {
		t.Errorf("Stat: %+v, %v", info, err)
	}
}

func uncommitted(t *testing.T, s, other blobstore.Store) {
	w, err := s.Create(t.Context(), "a/b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("content")); err != nil {
		t.Fatal(err)
	}
	if names := Names(t, other, ""); len(names) != 0 {
		t.Errorf("before Commit: %v", names)
	}
	_, err = other.Stat(t.Context(), "a/b")
	wantIs(t, "Stat before Commit", err, blobstore.ErrNotFound)
	w.Abort()
	if names := Names(t, other, ""); len(names) != 0 {
		t.Errorf("after Abort: %v", names)
	}
	Put(t, other, "a/b", []byte("other"))
}

func finished(t *testing.T, s, _ blobstore.Store) {
	w, err := s.Create(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.Abort()
	if _, err := w.Write([]byte("x")); err == nil {
		t.Error("Write after Commit: want an error")
	}
	if err := w.Commit(t.Context()); err == nil {
		t.Error("second Commit: want an error")
	}
	if got := Get(t, s, "a"); len(got) != 0 {
		t.Errorf("content %q", got)
	}
}

func exclusive(t *testing.T, s, other blobstore.Store) {
	late, err := other.Create(t.Context(), "name")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := late.Write([]byte("late")); err != nil {
		t.Fatal(err)
	}
	Put(t, s, "name", []byte("first"))
	wantIs(t, "Commit of the later one", late.Commit(t.Context()), blobstore.ErrExists)
	wantIs(t, "Create again", put(t.Context(), s, "name", []byte("again")), blobstore.ErrExists)
	if got := Get(t, other, "name"); string(got) != "first" {
		t.Errorf("content %q", got)
	}
}

func race(t *testing.T, s, other blobstore.Store) {
	const creators = 8
	g := group.New(t.Context(), "creators")
	var won, winner atomic.Int64
	for i := range int64(creators) {
		store := s
		if i%2 == 1 {
			store = other
		}
		err := g.Go(fmt.Sprintf("creator-%d", i), func(ctx context.Context) error {
			err := put(ctx, store, "dir/name", bytes.Repeat([]byte{byte(i)}, 1000))
			if err == nil {
				won.Add(1)
				winner.Store(i)
				return nil
			}
			if !errors.Is(err, blobstore.ErrExists) {
				return err
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if won.Load() != 1 {
		t.Fatalf("%d creators succeeded", won.Load())
	}
	if got := Get(t, s, "dir/name"); !bytes.Equal(got, bytes.Repeat([]byte{byte(winner.Load())}, 1000)) {
		t.Errorf("content is not the winner's")
	}
}

func list(t *testing.T, s, other blobstore.Store) {
	// "a-b" sorts before "a/b", which a walk of directories would visit first.
	for _, name := range []string{"a/b", "a-b", "a/b0/c", "a.b", "b", "job/chk-1/x", "job/chk-10/x", "job/chk-1x"} {
		Put(t, s, name, []byte(name))
	}
	for _, c := range []struct {
		prefix string
		want   []string
	}{
		{"", []string{"a-b", "a.b", "a/b", "a/b0/c", "b", "job/chk-1/x", "job/chk-10/x", "job/chk-1x"}},
		{"a", []string{"a-b", "a.b", "a/b", "a/b0/c"}},
		{"a/b", []string{"a/b", "a/b0/c"}},
		{"job/chk-1/", []string{"job/chk-1/x"}},
		{"job/chk-1", []string{"job/chk-1/x", "job/chk-10/x", "job/chk-1x"}},
		{"none/", []string{}},
		{"none", []string{}},
		{"b/", []string{}},
	} {
		if got := Names(t, other, c.prefix); !slices.Equal(got, c.want) {
			t.Errorf("List(%q) = %q, want %q", c.prefix, got, c.want)
		}
	}
}

func listStops(t *testing.T, s, _ blobstore.Store) {
	for _, name := range []string{"a", "b/c", "d"} {
		Put(t, s, name, nil)
	}
	seen := 0
	err := s.List(t.Context(), "", func(blobstore.Info) error {
		seen++
		if seen == 2 {
			return io.ErrClosedPipe
		}
		return nil
	})
	if err != io.ErrClosedPipe || seen != 2 {
		t.Errorf("List: %v after %d", err, seen)
	}
}

func remove(t *testing.T, s, other blobstore.Store) {
	for _, name := range []string{"d/a", "d/b", "e/f/g"} {
		Put(t, s, name, nil)
	}
	for _, name := range []string{"d/a", "e/f/g"} {
		if err := s.Delete(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	if got := Names(t, other, ""); !slices.Equal(got, []string{"d/b"}) {
		t.Errorf("left: %v", got)
	}
	wantIs(t, "second Delete", other.Delete(t.Context(), "d/a"), blobstore.ErrNotFound)
	Put(t, other, "e/f/h", nil)
}

func absent(t *testing.T, s, _ blobstore.Store) {
	Put(t, s, "dir/file", nil)
	for _, name := range []string{"nothing", "dir", "dir/nothing", "no/dir", "dir/file/below"} {
		_, err := s.Open(t.Context(), name, 0, -1)
		wantIs(t, "Open "+name, err, blobstore.ErrNotFound)
		_, err = s.Stat(t.Context(), name)
		wantIs(t, "Stat "+name, err, blobstore.ErrNotFound)
		wantIs(t, "Delete "+name, s.Delete(t.Context(), name), blobstore.ErrNotFound)
	}
	if got := Names(t, s, ""); !slices.Equal(got, []string{"dir/file"}) {
		t.Errorf("left: %v", got)
	}
}

func badNames(t *testing.T, s, _ blobstore.Store) {
	for _, name := range []string{"", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", "a\x00b", `a\b`, strings.Repeat("x", blobstore.MaxNameLength+1)} {
		_, err := s.Create(t.Context(), name)
		wantIs(t, fmt.Sprintf("Create(%.20q)", name), err, blobstore.ErrBadName)
		_, err = s.Open(t.Context(), name, 0, -1)
		wantIs(t, fmt.Sprintf("Open(%.20q)", name), err, blobstore.ErrBadName)
		_, err = s.Stat(t.Context(), name)
		wantIs(t, fmt.Sprintf("Stat(%.20q)", name), err, blobstore.ErrBadName)
		wantIs(t, fmt.Sprintf("Delete(%.20q)", name), s.Delete(t.Context(), name), blobstore.ErrBadName)
	}
	for _, prefix := range []string{"../", "a/../", "/", "a//b"} {
		wantIs(t, fmt.Sprintf("List(%q)", prefix), s.List(t.Context(), prefix, func(blobstore.Info) error { return nil }), blobstore.ErrBadName)
	}
}

func ended(t *testing.T, s, _ blobstore.Store) {
	Put(t, s, "there", nil)
	w, err := s.Create(t.Context(), "late")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Create(ctx, "a")
	wantIs(t, "Create", err, context.Canceled)
	_, err = s.Open(ctx, "there", 0, -1)
	wantIs(t, "Open", err, context.Canceled)
	_, err = s.Stat(ctx, "there")
	wantIs(t, "Stat", err, context.Canceled)
	wantIs(t, "List", s.List(ctx, "", func(blobstore.Info) error { return nil }), context.Canceled)
	wantIs(t, "Delete", s.Delete(ctx, "there"), context.Canceled)
	wantIs(t, "Commit", w.Commit(ctx), context.Canceled)
	if got := Names(t, s, ""); !slices.Equal(got, []string{"there"}) {
		t.Errorf("left: %v", got)
	}
}

func sizes(t *testing.T, s, other blobstore.Store) {
	large := bytes.Repeat([]byte("0123456789abcdef"), 3<<16)
	w, err := s.Create(t.Context(), "large")
	if err != nil {
		t.Fatal(err)
	}
	for rest := large; len(rest) > 0; {
		n := min(len(rest), 100_001)
		if _, err := w.Write(rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	if err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(Get(t, other, "large"), large) {
		t.Error("large blob differs")
	}
	Put(t, s, "empty", nil)
	if got := Get(t, other, "empty"); len(got) != 0 {
		t.Errorf("empty blob has %d bytes", len(got))
	}
}

func createWhileDeleting(t *testing.T, s, other blobstore.Store) {
	g := group.New(t.Context(), "churn")
	for i, store := range []blobstore.Store{s, other} {
		err := g.Go(fmt.Sprintf("process-%d", i), func(ctx context.Context) error {
			for n := range 30 {
				name := fmt.Sprintf("job/dir/p%d-%d", i, n)
				if err := put(ctx, store, name, nil); err != nil {
					return err
				}
				if err := store.Delete(ctx, name); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := Names(t, s, ""); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
}
