package faulty

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/weirflow/weir/blobstore"
)

// ErrKilled is returned by every call after Kill.
var ErrKilled = errors.New("process was killed")

// Op is a kind of call.
type Op string

// Kinds of calls. Read and Write are the calls on an open blob.
const (
	Create Op = "create"
	Write  Op = "write"
	Commit Op = "commit"
	Open   Op = "open"
	Read   Op = "read"
	Stat   Op = "stat"
	List   Op = "list"
	Delete Op = "delete"
)

// Hook is asked about every call. Its functions may be nil. They may block, which
// delays the call; ctx ends with the call's and at Kill.
type Hook struct {
	// Before is called before the call takes effect; if it returns an error, it does
	// not, and the caller gets the error.
	Before func(ctx context.Context, op Op, name string) error
	// After is called when it has taken effect; if it returns an error, the caller
	// gets that instead of the answer: "created, but the answer was lost".
	After func(ctx context.Context, op Op, name string) error
}

// Store is a [blobstore.Store] that can be made to fail.
type Store struct {
	inner blobstore.Store
	hook  Hook
	mu    struct {
		sync.Mutex
		killed  bool
		cancels map[*call]context.CancelCauseFunc // of calls under way
	}
}

type call struct{ _ byte }

var _ blobstore.Store = (*Store)(nil)

// New wraps a store.
func New(inner blobstore.Store, hook Hook) *Store {
	s := &Store{inner: inner, hook: hook}
	s.mu.cancels = make(map[*call]context.CancelCauseFunc)
	return s
}

// Kill makes every call fail with [ErrKilled] from now on. A call under way that has
// not taken effect will not.
func (s *Store) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.killed = true
	for _, cancel := range s.mu.cancels {
		cancel(ErrKilled)
	}
}

// do is the one path of all calls.
func (s *Store) do(ctx context.Context, op Op, name string, effect func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c := new(call)
	s.mu.Lock()
	if s.mu.killed {
		s.mu.Unlock()
		return fmt.Errorf("%s %s: %w", op, name, ErrKilled)
	}
	s.mu.cancels[c] = cancel
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.mu.cancels, c)
		s.mu.Unlock()
	}()

	if err := ask(ctx, s.hook.Before, op, name); err != nil {
		return err
	}
	if err := effect(ctx); err != nil {
		return err
	}
	return ask(ctx, s.hook.After, op, name)
}

// ask calls half of the hook; a kill meanwhile is the answer.
func ask(ctx context.Context, half func(context.Context, Op, string) error, op Op, name string) error {
	var err error
	if half != nil {
		err = half(ctx, op, name)
	}
	if errors.Is(context.Cause(ctx), ErrKilled) {
		err = ErrKilled
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", op, name, err)
	}
	return nil
}

// Location is the wrapped store's.
func (s *Store) Location() string { return s.inner.Location() }

// Create wraps the writer too.
func (s *Store) Create(ctx context.Context, name string) (blobstore.Writer, error) {
	var w blobstore.Writer
	err := s.do(ctx, Create, name, func(ctx context.Context) (err error) {
		w, err = s.inner.Create(ctx, name)
		return err
	})
	if err != nil {
		if w != nil {
			w.Abort()
		}
		return nil, err
	}
	return &writer{store: s, name: name, inner: w}, nil
}

// Open wraps the reader too.
func (s *Store) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	var r io.ReadCloser
	err := s.do(ctx, Open, name, func(ctx context.Context) (err error) {
		r, err = s.inner.Open(ctx, name, offset, length)
		return err
	})
	if err != nil {
		if r != nil {
			_ = r.Close() // the caller hears of err
		}
		return nil, err
	}
	return &reader{store: s, name: name, inner: r}, nil
}

// Stat asks the hook, then the store.
func (s *Store) Stat(ctx context.Context, name string) (info blobstore.Info, err error) {
	err = s.do(ctx, Stat, name, func(ctx context.Context) (err error) {
		info, err = s.inner.Stat(ctx, name)
		return err
	})
	return info, err
}

// List asks the hook once, not for each blob.
func (s *Store) List(ctx context.Context, prefix string, fn func(blobstore.Info) error) error {
	var infos []blobstore.Info
	err := s.do(ctx, List, prefix, func(ctx context.Context) error {
		return s.inner.List(ctx, prefix, func(i blobstore.Info) error {
			infos = append(infos, i)
			return nil
		})
	})
	if err != nil {
		return err
	}
	for _, info := range infos {
		if err := fn(info); err != nil {
			return err
		}
	}
	return nil
}

// Delete asks the hook, then the store.
func (s *Store) Delete(ctx context.Context, name string) error {
	return s.do(ctx, Delete, name, func(ctx context.Context) error { return s.inner.Delete(ctx, name) })
}
