package etcdserver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"
)

// Free says how many bytes can still be written in a directory.
type Free func(dir string) (int64, error)

// How much room etcd needs, in bytes. Its log and its database are preallocated in steps
// of 4 MiB and at most 16 MiB; a snapshot copies a database of a few MiB. When it has no
// room etcd ends the process in the middle of a write, so we end earlier.
const (
	spaceToStart = 32 << 20
	spaceToWarn  = 128 << 20
	spaceToStop  = 16 << 20
)

// checkSpace refuses to start where there is no room. A file system that does not tell is
// believed to have some.
func checkSpace(dir string, free Free) error {
	n, err := free(dir)
	if err != nil || n >= spaceToStart {
		return nil
	}
	return full(dir, n, spaceToStart)
}

func full(dir string, free, want int64) error {
	return fmt.Errorf("%w: %s has %d MiB left, etcd needs %d MiB: make room, then start the JobManager again; its jobs resume from their last checkpoints",
		ErrFull, dir, free>>20, want>>20)
}

// Watch returns nil at ctx's end, or an error when the server cannot go on: it has
// failed, or there is no room for it any more, of which it warns before.
func (s *Server) Watch(ctx context.Context) error {
	t := time.NewTimer(s.look)
	defer t.Stop()
	warned := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-s.failed:
			return s.failure(err)
		case <-t.C:
		}
		t.Reset(s.look + rand.N(s.look/10+1))
		n, err := s.free(s.dir)
		switch {
		case err != nil || n >= spaceToWarn:
			warned = false
		case n < spaceToStop:
			return full(s.dir, n, spaceToStop)
		case !warned:
			warned = true
			s.log.Warn("little room is left for the data directory; below the stop mark the JobManager ends",
				zap.String("dir", s.dir), zap.Int64("free_bytes", n), zap.Int64("stop_below_bytes", spaceToStop))
		}
	}
}

// failure is what etcd failed of; a full disk is the likeliest cause.
func (s *Server) failure(err error) error {
	s.dead.Store(true)
	if n, ferr := s.free(s.dir); ferr == nil && n < spaceToStop {
		return fmt.Errorf("%w (%w)", full(s.dir, n, spaceToStop), err)
	}
	return fmt.Errorf("%w: %s: %w", ErrFailed, s.dir, err)
}
