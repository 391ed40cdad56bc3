package store

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/snapshotmeta"
)

// Cleaner deletes files of one job's checkpoint directory. It never touches files in
// snapshotmeta.SharedDir: when those have no user left is for the shared-state
// registry to say.
type Cleaner struct {
	store blobstore.Store
	job   weir.JobID
	chain *Chain
	mu    struct {
		sync.Mutex
		// files are those that a link's _metadata names, by link number. A _metadata
		// does not change, so it is read once.
		files map[uint64][]string
	}
}

// NewCleaner returns the cleaner of a job.
func NewCleaner(store blobstore.Store, job weir.JobID, chain *Chain) *Cleaner {
	c := &Cleaner{store: store, job: job, chain: chain}
	c.mu.files = make(map[uint64][]string)
	return c
}

// Discard deletes the directory of a snapshot that is not in the chain: its link was
// removed, or it was aborted. Files that a link names are kept; _metadata goes last,
// so that a discard that was cut short can be repeated. Of what cannot be deleted the
// errors are joined; the rest is deleted all the same.
func (c *Cleaner) Discard(ctx context.Context, id weir.CheckpointID) error {
	if c.chain.mayBeLinked(id) {
		return fmt.Errorf("discard checkpoint %d: %w", id, ErrLinked)
	}
	retained, err := c.retained(ctx)
	if err != nil {
		return fmt.Errorf("discard checkpoint %d: %w", id, err)
	}
	var names []string
	metadata := snapshotmeta.MetadataName(c.job, id)
	err = c.store.List(ctx, path.Dir(metadata)+"/", func(i blobstore.Info) error {
		if i.Name != metadata {
			names = append(names, i.Name)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("discard checkpoint %d: %w", id, err)
	}
	if err := c.delete(ctx, names, retained); err != nil {
		return fmt.Errorf("discard checkpoint %d: %w", id, err)
	}
	if err := c.delete(ctx, []string{metadata}, retained); err != nil {
		return fmt.Errorf("discard checkpoint %d: %w", id, err)
	}
	return nil
}

// DiscardHandles deletes the files of states that belong to no snapshot: acknowledged
// to a checkpoint that was aborted, late or by an unknown attempt. A file that several
// of them name is deleted once. Files that a link names, or a snapshot that may become
// one, are kept.
func (c *Cleaner) DiscardHandles(ctx context.Context, states ...weir.TaskStateSnapshot) error {
	var names []string
	for _, state := range states {
		snapshotmeta.TaskHandles(state, func(h weir.StateHandle) {
			if blobstore.CheckName(h.File) == nil && !strings.HasPrefix(h.File, snapshotmeta.SharedDir+"/") {
				names = append(names, path.Join(snapshotmeta.JobDir(c.job), h.File))
			}
		})
	}
	if len(names) == 0 {
		return nil // inline, shared or another job's
	}
	slices.Sort(names)
	names = slices.Compact(names)
	retained, err := c.retained(ctx)
	if err == nil {
		err = c.delete(ctx, names, retained)
	}
	if err != nil {
		return fmt.Errorf("discard state: %w", err)
	}
	return nil
}

// DiscardJob deletes the job's whole directory. The job must be recorded as ended, and
// its checkpoints not be retained.
func (c *Cleaner) DiscardJob(ctx context.Context) error {
	var errs []error
	err := c.store.List(ctx, snapshotmeta.JobDir(c.job)+"/", func(i blobstore.Info) error {
		if err := c.store.Delete(ctx, i.Name); err != nil && !errors.Is(err, blobstore.ErrNotFound) {
			errs = append(errs, err)
		}
		return ctx.Err()
	})
	if err := errors.Join(append(errs, err)...); err != nil {
		return fmt.Errorf("discard checkpoints of job %s: %w", c.job, err)
	}
	return nil
}

// delete deletes the blobs that are not retained. One that is absent is no error.
func (c *Cleaner) delete(ctx context.Context, names []string, retained map[string]bool) error {
	var errs []error
	for _, name := range names {
		if retained[name] || c.inOpenDir(name) {
			continue
		}
		err := c.store.Delete(ctx, name)
		if err != nil && !errors.Is(err, blobstore.ErrNotFound) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// inOpenDir says whether the blob lies in the directory of a checkpoint that may
// become a link.
func (c *Cleaner) inOpenDir(name string) bool {
	return slices.ContainsFunc(c.chain.openIDs(), func(id weir.CheckpointID) bool {
		return path.Dir(name) == path.Dir(snapshotmeta.MetadataName(c.job, id))
	})
}

// retained returns the names of all blobs that links name. If it cannot tell, nothing
// may be deleted.
func (c *Cleaner) retained(ctx context.Context) (map[string]bool, error) {
	links := c.chain.Links()
	c.forget(links)
	names := make(map[string]bool)
	for _, l := range links {
		files, err := c.filesOf(ctx, l)
		if err != nil {
			return nil, fmt.Errorf("read what link %d retains: %w", l.Number, err)
		}
		for _, f := range files {
			names[f] = true
		}
	}
	return names, nil
}

// filesOf returns the blobs that a link names: its _metadata and what is named there.
func (c *Cleaner) filesOf(ctx context.Context, l ha.Link) ([]string, error) {
	c.mu.Lock()
	files, ok := c.mu.files[l.Number]
	c.mu.Unlock()
	if ok {
		return files, nil
	}
	s, err := snapshotmeta.Open(ctx, c.store, l.Metadata)
	if err != nil {
		return nil, err
	}
	job := path.Dir(path.Dir(l.Metadata))
	seen := map[string]bool{l.Metadata: true}
	s.Handles(func(h weir.StateHandle) {
		if h.File != "" {
			seen[path.Join(job, h.File)] = true
		}
	})
	for f := range seen {
		files = append(files, f)
	}
	slices.Sort(files)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.files[l.Number] = files
	return files, nil
}

// forget drops what was remembered of links that are gone.
func (c *Cleaner) forget(links []ha.Link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for number := range c.mu.files {
		if !slices.ContainsFunc(links, func(l ha.Link) bool { return l.Number == number }) {
			delete(c.mu.files, number)
		}
	}
}
