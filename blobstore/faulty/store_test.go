package faulty_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/blobstore/faulty"
	"github.com/weirflow/weir/blobstore/mem"
	"github.com/weirflow/weir/blobstore/storetest"
	"github.com/weirflow/weir/internal/group"
)

func TestContractWithoutFaults(t *testing.T) {
	storetest.Run(t, func(t *testing.T) (store, other blobstore.Store) {
		m := mem.New()
		return faulty.New(m, faulty.Hook{}), faulty.New(m, faulty.Hook{})
	})
}

// failing returns one half of a hook that fails one op.
func failing(bad faulty.Op) func(context.Context, faulty.Op, string) error {
	return func(_ context.Context, op faulty.Op, _ string) error {
		if op == bad {
			return io.ErrUnexpectedEOF
		}
		return nil
	}
}

func create(ctx context.Context, s blobstore.Store, name string) error {
	w, err := s.Create(ctx, name)
	if err != nil {
		return err
	}
	if _, err := w.Write([]byte("content")); err != nil {
		return err
	}
	return w.Commit(ctx)
}

func TestFailureBeforeHasNoEffectAndAfterLosesOnlyTheAnswer(t *testing.T) {
	for _, op := range []faulty.Op{faulty.Create, faulty.Write, faulty.Commit} {
		m := mem.New()
		err := create(t.Context(), faulty.New(m, faulty.Hook{Before: failing(op)}), "a")
		if !errors.Is(err, io.ErrUnexpectedEOF) || len(storetest.Names(t, m, "")) != 0 {
			t.Errorf("before %s: %v, left %v", op, err, storetest.Names(t, m, ""))
		}
	}
	m := mem.New()
	err := create(t.Context(), faulty.New(m, faulty.Hook{After: failing(faulty.Commit)}), "a")
	if !errors.Is(err, io.ErrUnexpectedEOF) || len(storetest.Names(t, m, "")) != 1 {
		t.Errorf("after commit: %v, left %v", err, storetest.Names(t, m, ""))
	}
	err = faulty.New(m, faulty.Hook{After: failing(faulty.Delete)}).Delete(t.Context(), "a")
	if !errors.Is(err, io.ErrUnexpectedEOF) || len(storetest.Names(t, m, "")) != 0 {
		t.Errorf("after delete: %v, left %v", err, storetest.Names(t, m, ""))
	}
}

func TestFailingReadFailsTheReader(t *testing.T) {
	m := mem.New()
	storetest.Put(t, m, "a", []byte("content"))
	r, err := faulty.New(m, faulty.Hook{Before: failing(faulty.Read)}).Open(t.Context(), "a", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if b, err := io.ReadAll(r); !errors.Is(err, io.ErrUnexpectedEOF) || len(b) != 0 {
		t.Errorf("ReadAll: %q, %v", b, err)
	}
}

func TestKillEndsBlockedCallsWithoutEffectAndLeavesTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := mem.New()
		blocked := faulty.New(m, faulty.Hook{Before: func(ctx context.Context, op faulty.Op, _ string) error {
			if op == faulty.Commit {
				<-ctx.Done()
			}
			return nil // even a hook that does not say so
		}})
		g := group.New(t.Context(), "g")
		var err error
		if serr := g.Go("create", func(ctx context.Context) error { err = create(ctx, blocked, "a"); return nil }); serr != nil {
			t.Fatal(serr)
		}
		synctest.Wait()
		blocked.Kill()
		if werr := g.Wait(); werr != nil {
			t.Fatal(werr)
		}
		if !errors.Is(err, faulty.ErrKilled) {
			t.Errorf("blocked call: %v", err)
		}
		if _, err := blocked.Stat(t.Context(), "a"); !errors.Is(err, faulty.ErrKilled) {
			t.Errorf("later call: %v", err)
		}
		other := faulty.New(m, faulty.Hook{})
		if err := create(t.Context(), other, "b"); err != nil {
			t.Errorf("another process: %v", err)
		}
		if got := storetest.Names(t, m, ""); !slices.Equal(got, []string{"b"}) {
			t.Errorf("left %v", got)
		}
	})
}
