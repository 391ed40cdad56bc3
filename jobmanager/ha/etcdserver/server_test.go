package etcdserver_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/weirflow/weir/jobmanager/ha/etcdserver"
)

func start(t *testing.T, dir string) *etcdserver.Server {
	t.Helper()
	s, err := etcdserver.Start(t.Context(), etcdserver.Options{Dir: dir, Sync: etcdserver.Unsynced})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func stop(t *testing.T, s *etcdserver.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for range 2 {
		if err := s.Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

func TestServerKeepsItsKeysOverARestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by", "start")
	for run := range 2 {
		s := start(t, dir)
		c := s.Client()
		if run == 0 {
			if _, err := c.Put(t.Context(), "k", "v"); err != nil {
				t.Fatal(err)
			}
		}
		resp, err := c.Get(t.Context(), "k")
		if err != nil || len(resp.Kvs) != 1 || string(resp.Kvs[0].Value) != "v" {
			t.Fatalf("run %d: %+v, %v", run, resp, err)
		}
		if err := c.Close(); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		stop(t, s)
		select {
		case <-s.Stopped():
		default:
			t.Error("not stopped after Close")
		}
	}
}

func TestOrdinaryStartIsQuiet(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	dir := t.TempDir()
	for range 2 {
		s, err := etcdserver.Start(t.Context(), etcdserver.Options{Dir: dir, Logger: zap.New(core)})
		if err != nil {
			t.Fatal(err)
		}
		stop(t, s)
	}
	// What is logged is about this run, such as a request cancelled by so early a stop;
	// not what etcd warns of at every start, and nothing below a warning.
	for _, e := range logs.All() {
		if e.Level < zapcore.WarnLevel || strings.Contains(e.Message, "not recommended") || strings.Contains(e.Message, "simple token") {
			t.Errorf("logged: %s %s %v", e.Level, e.Message, e.ContextMap())
		}
	}
}

func TestSecondServerInADirectoryIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir)
	_, err := etcdserver.Start(t.Context(), etcdserver.Options{Dir: dir})
	if !errors.Is(err, etcdserver.ErrInUse) || !strings.Contains(err.Error(), dir) {
		t.Errorf("second Start: %v", err)
	}
	stop(t, s)
	stop(t, start(t, dir))
}

func TestUnusableDirectoryIsAClearError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := etcdserver.Start(t.Context(), etcdserver.Options{Dir: filepath.Join(file, "below")})
	if !errors.Is(err, etcdserver.ErrDirectory) {
		t.Errorf("below a file: %v", err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "etcd"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the lock was given back
		_, err = etcdserver.Start(t.Context(), etcdserver.Options{Dir: dir})
		if !errors.Is(err, etcdserver.ErrDirectory) || !strings.Contains(err.Error(), dir) {
			t.Errorf("a file is in etcd's place: %v", err)
		}
	}
}

func TestDamagedDirectoryIsAClearError(t *testing.T) {
	for _, damage := range []string{"member/snap/db", "member/wal"} {
		dir := t.TempDir()
		stop(t, start(t, dir))
		path := filepath.Join(dir, "etcd", damage)
		files := []string{path}
		if info, err := os.Stat(path); err != nil {
			t.Fatal(err)
		} else if info.IsDir() {
			if files, err = filepath.Glob(path + "/*.wal"); err != nil || len(files) == 0 {
				t.Fatalf("log files %v, %v", files, err)
			}
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for i := range min(len(b), 20_000) {
				b[i] ^= 0x55
			}
			if err := os.WriteFile(f, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := etcdserver.Start(t.Context(), etcdserver.Options{Dir: dir})
		if !errors.Is(err, etcdserver.ErrDamaged) || !strings.Contains(err.Error(), dir) {
			t.Errorf("damaged %s: %v", damage, err)
		}
	}
}

const mib = 1 << 20

func TestDirectoryWithoutRoomIsRefusedAtStart(t *testing.T) {
	dir, room := t.TempDir(), int64(31*mib)
	o := etcdserver.Options{Dir: dir, Sync: etcdserver.Unsynced, Free: func(string) (int64, error) { return room, nil }}
	_, err := etcdserver.Start(t.Context(), o)
	if !errors.Is(err, etcdserver.ErrFull) || !strings.Contains(err.Error(), dir+"/etcd has 31 MiB left, etcd needs 32 MiB: make room") {
		t.Errorf("got %v", err)
	}
	room = 32 * mib
	s, err := etcdserver.Start(t.Context(), o) // the lock was given back
	if err != nil {
		t.Fatal(err)
	}
	stop(t, s)
}

// The room shrinks from look to look: first nothing, then one warning, then the end.
func TestDirectoryThatFillsUpIsWarnedOfAndThenEndsTheServer(t *testing.T) {
	core, logs := observer.New(zapcore.WarnLevel)
	rooms := []int64{1000 * mib, 1000 * mib, 128 * mib, 127 * mib, 16 * mib, 200 * mib, 100 * mib, 16*mib - 1}
	looks := 0
	s, err := etcdserver.Start(t.Context(), etcdserver.Options{
		Dir: t.TempDir(), Sync: etcdserver.Unsynced, Logger: zap.New(core), LookEvery: time.Millisecond,
		Free: func(string) (int64, error) {
			looks++
			return rooms[looks-1], nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, s)
	err = s.Watch(t.Context())
	if !errors.Is(err, etcdserver.ErrFull) || !strings.Contains(err.Error(), "15 MiB left") || looks != len(rooms) {
		t.Errorf("after %d looks: %v", looks, err)
	}
	if n := logs.FilterMessageSnippet("little room is left").Len(); n != 2 { // it had recovered once
		t.Errorf("%d warnings, want 2", n)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Watch(ended); err != nil {
		t.Errorf("after the end: %v", err)
	}
}
