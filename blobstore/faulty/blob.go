package faulty

import (
	"context"
	"io"

	"github.com/weirflow/weir/blobstore"
)

// writer is a wrapped writer.
type writer struct {
	store *Store
	name  string
	inner blobstore.Writer
}

func (w *writer) Write(p []byte) (n int, err error) {
	err = w.store.do(context.Background(), Write, w.name, func(context.Context) (err error) {
		n, err = w.inner.Write(p)
		return err
	})
	return n, err
}

func (w *writer) Commit(ctx context.Context) error {
	err := w.store.do(ctx, Commit, w.name, w.inner.Commit)
	if err != nil {
		w.inner.Abort() // does nothing if it was committed
	}
	return err
}

func (w *writer) Abort() { w.inner.Abort() }

// reader is a wrapped reader.
type reader struct {
	store *Store
	name  string
	inner io.ReadCloser
}

func (r *reader) Read(p []byte) (n int, err error) {
	var end error // io.EOF is an answer, not a failure
	err = r.store.do(context.Background(), Read, r.name, func(context.Context) error {
		n, end = r.inner.Read(p)
		return nil
	})
	if err != nil {
		return 0, err
	}
	return n, end
}

func (r *reader) Close() error { return r.inner.Close() }
