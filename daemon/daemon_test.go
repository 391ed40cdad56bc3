package daemon

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/blobstore/mem"
	"github.com/weirflow/weir/cli"
	"github.com/weirflow/weir/localfs"
	"github.com/weirflow/weir/rpc"
)

func TestPlaintextBeyondLoopbackMustBeMeant(t *testing.T) {
	t.Parallel()
	for address, loopback := range map[string]bool{
		"127.0.0.1:0": true, "127.8.9.1:6123": true, "[::1]:0": true, "localhost:80": true,
		"0.0.0.0:0": false, ":6123": false, "[::]:0": false, "10.0.0.1:1": false, "example.org:80": false, "localhost.example.org:1": false,
	} {
		if err := checkListens(address, "", false); (err == nil) != loopback {
			t.Errorf("--listen %s: %v", address, err)
		}
		if err := checkListens("127.0.0.1:0", address, false); (err == nil) != loopback {
			t.Errorf("--metrics-listen %s: %v", address, err)
		}
		if err := checkListens(address, address, true); err != nil {
			t.Errorf("%s with --insecure: %v", address, err)
		}
	}
	for _, bad := range []string{"", "here", "127.0.0.1", "127.0.0.1:1:2"} {
		if err := checkListens(bad, "", true); rpc.CodeOf(err) != rpc.CodeInvalidArgument {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestAdvertisedIsWhatGotBound(t *testing.T) {
	t.Parallel()
	bound := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4711}
	for advertise, want := range map[string]string{
		"": "127.0.0.1:4711", "10.0.0.1": "10.0.0.1:4711", "10.0.0.1:0": "10.0.0.1:4711", "10.0.0.1:80": "10.0.0.1:80",
		"host": "host:4711", "host:1": "host:1", "[::1]": "[::1]:4711", "::1": "[::1]:4711", "[::1]:9": "[::1]:9",
	} {
		if got, err := advertised(advertise, bound); err != nil || got != want {
			t.Errorf("%q: %q, %v", advertise, got, err)
		}
	}
	for _, bad := range []string{"http://a/b", "a b", "host:port", "host:70000", "me@host", "/"} {
		if got, err := advertised(bad, bound); rpc.CodeOf(err) != rpc.CodeInvalidArgument {
			t.Errorf("%q: %q, %v", bad, got, err)
		}
	}
	got, err := advertised("", &net.TCPAddr{IP: net.IPv6unspecified, Port: 5})
	host, port, serr := net.SplitHostPort(got)
	if ip := net.ParseIP(host); err != nil || serr != nil || port != "5" || ip == nil || ip.IsUnspecified() {
		t.Errorf("of a socket on every address: %q, %v", got, err)
	}
}

func TestTakenPortIsNamedWithWhatToDo(t *testing.T) {
	t.Parallel()
	l, err := listen(t.Context(), "--listen", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = listen(t.Context(), "--listen", l.Addr().String())
	var e *rpc.Error
	if !errors.As(err, &e) || !strings.Contains(e.Message, l.Addr().String()) || !strings.Contains(e.Hint, "port 0") {
		t.Errorf("%v", err)
	}
}

func TestIdentityIsKeptAndHasOneHolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func() (identity, error) {
		files, err := localfs.Dir(dir)
		if err != nil {
			t.Fatal(err)
		}
		return identify(files)
	}
	first, err := open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(); !errors.Is(err, localfs.ErrLocked) || !strings.Contains(err.Error(), dir) {
		t.Errorf("second holder: %v", err)
	}
	if err := first.lock.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := open()
	if err != nil || second.id != first.id || second.incarnation == first.incarnation {
		t.Errorf("%v then %v: %v", first, second, err)
	}
	if err := second.lock.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "taskmanager-id"), []byte("not an id\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := open(); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("damaged identity: %v", err)
	}
}

func TestPartsStopInReverseOrderAndOnce(t *testing.T) {
	t.Parallel()
	var p parts
	var order []int
	for i := range 3 {
		p.add(func(context.Context) error {
			order = append(order, i)
			if i == 1 {
				return errors.New("broken")
			}
			return nil
		})
	}
	if err := p.stop(); err == nil || err.Error() != "broken" || len(order) != 3 || order[0] != 2 || order[2] != 0 {
		t.Errorf("%v, %v", order, err)
	}
	if err := p.stop(); err != nil || len(order) != 3 {
		t.Errorf("again: %v, %v", order, err)
	}
}

func TestSharedStoreAsksOnceItMust(t *testing.T) {
	t.Parallel()
	asked, opened := 0, 0
	away := errors.New("the JobManager is away")
	s := &sharedStore{
		where: func(context.Context) (string, error) {
			if asked++; asked == 1 {
				return "", away
			}
			return "/shared", nil
		},
		open: func(dir string) (blobstore.Store, error) {
			opened++
			return mem.New(), nil
		},
	}
	if _, err := s.Create(t.Context(), "a/b"); !errors.Is(err, away) {
		t.Errorf("while it is away: %v", err)
	}
	w, err := s.Create(t.Context(), "a/b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, "content"); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if info, err := s.Stat(t.Context(), "a/b"); err != nil || info.Size != 7 {
		t.Errorf("%+v, %v", info, err)
	}
	n := 0
	if err := s.List(t.Context(), "a", func(blobstore.Info) error { n++; return nil }); err != nil || n != 1 {
		t.Errorf("%d blobs, %v", n, err)
	}
	if err := s.Delete(t.Context(), "a/b"); err != nil {
		t.Error(err)
	}
	if _, err := s.Open(t.Context(), "a/b", 0, -1); !errors.Is(err, blobstore.ErrNotFound) {
		t.Errorf("after it was deleted: %v", err)
	}
	if asked != 2 || opened != 1 {
		t.Errorf("asked %d times, opened %d times", asked, opened)
	}
}

func TestForeignStoresAreOpenedOnceAndMustExist(t *testing.T) {
	t.Parallel()
	var f foreignStores
	dir := t.TempDir()
	a, err := f.open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := f.open(dir); err != nil || a != b {
		t.Errorf("opened again: %v", err)
	}
	if _, err := f.open(filepath.Join(dir, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}

func TestForeignStoreIsOpenedAgainWhenAnotherDirectoryIsThere(t *testing.T) {
	t.Parallel()
	var f foreignStores
	dir := filepath.Join(t.TempDir(), "kept")
	for _, name := range []string{"first", "second"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := f.open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Stat(t.Context(), name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.Rename(dir, dir+name); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.open(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("removed: %v", err)
	}
}

func TestCandidatesOfSharedEtcdDiffer(t *testing.T) {
	t.Parallel()
	shared := cli.JobManagerOptions{EtcdEndpoints: []string{"etcd:2379"}}
	if a, b := candidateID(shared, "h:1"), candidateID(shared, "h:1"); a == b {
		t.Errorf("two JobManagers are both %q", a)
	}
	if a, b := candidateID(cli.JobManagerOptions{}, "h:1"), candidateID(cli.JobManagerOptions{}, "h:2"); a != b {
		t.Errorf("a JobManager with its own etcd does not recognise its lease: %q, %q", a, b)
	}
}

func TestCodeIDIsThatOfTheExecutableWithoutAStamp(t *testing.T) {
	t.Parallel()
	a, err := CodeID()
	b, _ := CodeID()
	if err != nil || a != b || !strings.HasPrefix(a, "exe-") || len(a) != len("exe-")+32 {
		t.Errorf("%q, %q, %v", a, b, err)
	}
}
