package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/jobmanager/jobmaster"
)

// errElsewhere is returned for the state of a job whose submission is not in the
// store: what would be written there, nobody would find again.
var errElsewhere = errors.New("the JobManager's checkpoint directory is not here")

// homeStore writes a job's blobs only where its JobManager has put the job's
// submission. A directory that is there but another one, for example a mount point
// without its volume, would take state files that no checkpoint can be read from.
type homeStore struct {
	blobstore.Store

	mu struct {
		sync.Mutex
		last string // directory of a job that is at home here
	}
}

// Create implements [blobstore.Store].
func (s *homeStore) Create(ctx context.Context, name string) (blobstore.Writer, error) {
	dir, _, _ := strings.Cut(name, "/")
	if err := s.check(ctx, dir); err != nil {
		return nil, err
	}
	return s.Store.Create(ctx, name)
}

func (s *homeStore) check(ctx context.Context, dir string) error {
	if s.known(dir) {
		return nil
	}
	job, err := weir.ParseJobID(dir)
	if err != nil {
		return nil
	}
	if _, err := s.Store.Stat(ctx, jobmaster.BodyName(job)); errors.Is(err, blobstore.ErrNotFound) {
		return fmt.Errorf("%w: %s does not have the job's submission: %w (mount it, or give --checkpoint-dir)", errElsewhere, s.Location(), err)
	} else if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.last = dir
	return nil
}

func (s *homeStore) known(dir string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.last == dir
}
