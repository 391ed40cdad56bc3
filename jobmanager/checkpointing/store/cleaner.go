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

// Cleaner deletes files of one job's snapshots. Files in snapshotmeta.SharedDir are
// deleted only by [Cleaner.DiscardShared]: when those have no user left is for the
// shared-state registry to say.
type Cleaner struct {
	// OpenStore opens another store by its location, for snapshots that were claimed
	// there and savepoints. Nil: there are none. It is set before the first call.
	OpenStore func(location string) (blobstore.Store, error)

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
// removed, or it was aborted. One that another job has claimed is left to it. Files that a link names are kept; _metadata goes last,
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
	claimed := false
	metadata := snapshotmeta.MetadataName(c.job, id)
	err = c.store.List(ctx, path.Dir(metadata)+"/", func(i blobstore.Info) error {
		if i.Name != metadata {
			names = append(names, i.Name)
		}
		claimed = claimed || path.Base(i.Name) == ClaimFile
		return nil
	})
	if err != nil {
		return fmt.Errorf("discard checkpoint %d: %w", id, err)
	}
	if claimed {
		return nil // somebody else owns it now, and deletes it
	}
	if err := c.delete(ctx, names, retained); err != nil {
		return fmt.Errorf("discard checkpoint %d: %w", id, err)
	}
	if err := c.delete(ctx, []string{metadata}, retained); err != nil {
		return fmt.Errorf("discard checkpoint %d: %w", id, err)
	}
	return nil
}

// DiscardAt deletes a snapshot that is not in the job's own directory: one that the job
// has claimed and that is subsumed, or a savepoint that was aborted while its _metadata
// was written. Only the files that it names in its own directory go, for the directory
// may be somebody's; then _metadata, and last the claim, so that nobody else claims what
// is half deleted. Whatever a link names is kept. It can be repeated.
func (c *Cleaner) DiscardAt(ctx context.Context, metadata string) error {
	if err := c.discardAt(ctx, metadata); err != nil {
		return fmt.Errorf("discard snapshot %s: %w", metadata, err)
	}
	return nil
}

func (c *Cleaner) discardAt(ctx context.Context, metadata string) error {
	if c.chain.names(metadata) {
		return ErrLinked
	}
	at, name, err := c.locate(metadata)
	if err != nil {
		return err
	}
	retained, err := c.retained(ctx)
	if err != nil {
		return err
	}
	dir := path.Dir(name)
	var names []string
	_, err = snapshotmeta.Walk(ctx, at.store, name, handleVisitor(func(h weir.StateHandle) {
		if file := path.Join(path.Dir(dir), h.File); h.File != "" && path.Dir(file) == dir {
			names = append(names, file)
		}
	}))
	switch {
	case errors.Is(err, snapshotmeta.ErrNotFound): // deleted before, but perhaps the claim
	case err != nil:
		return err
	}
	slices.Sort(names)
	for _, group := range [][]string{slices.Compact(names), {name}, {path.Join(dir, ClaimFile)}} {
		if err := c.deleteAt(ctx, at, group, retained); err != nil {
			return err
		}
	}
	return nil
}

// handleVisitor calls fn with every handle of a snapshot that is not zero.
func handleVisitor(fn func(weir.StateHandle)) snapshotmeta.Visitor {
	return snapshotmeta.Visitor{
		Subtask: func(_ *snapshotmeta.Operator, sub *snapshotmeta.Subtask) error {
			snapshotmeta.TaskHandles(weir.TaskStateSnapshot{Operators: []weir.OperatorSubtaskState{sub.State}}, fn)
			return nil
		},
		Coordinator: func(op *snapshotmeta.Operator) error {
			fn(op.Coordinator)
			return nil
		},
		Channel: func(ch *weir.ChannelStateHandle) error {
			fn(ch.Handle)
			return nil
		},
	}
}

// DiscardHandles deletes the files of states that belong to no snapshot: acknowledged
// to a checkpoint that was aborted, late or by an unknown attempt. Handles are relative
// to the job's directory, or, if location is absolute (a savepoint's), to the directory
// it lies in. A file that several of them name is deleted once. Files that a link names,
// or a snapshot that may become one, are kept.
func (c *Cleaner) DiscardHandles(ctx context.Context, location string, states ...weir.TaskStateSnapshot) error {
	at, dir := place{store: c.store}, snapshotmeta.JobDir(c.job)
	if _, _, absolute := snapshotmeta.CutForeign(location); absolute {
		var name string
		var err error
		if at, name, err = c.locate(location); err != nil {
			return fmt.Errorf("discard state: %w", err)
		}
		dir = path.Dir(name)
	}
	var names []string
	for _, state := range states {
		snapshotmeta.TaskHandles(state, func(h weir.StateHandle) {
			if blobstore.CheckName(h.File) == nil && !strings.HasPrefix(h.File, snapshotmeta.SharedDir+"/") {
				names = append(names, path.Join(dir, h.File))
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
		err = c.deleteAt(ctx, at, names, retained)
	}
	if err != nil {
		return fmt.Errorf("discard state: %w", err)
	}
	return nil
}

// place is a store, and what its names are preceded by among names of all stores:
// nothing for the checkpoint store.
type place struct {
	store  blobstore.Store
	prefix string
}

// locate finds the store of a blob whose name may be absolute, and its name there.
func (c *Cleaner) locate(blob string) (place, string, error) {
	location, name, foreign := snapshotmeta.CutForeign(blob)
	switch {
	case !foreign || location == "" || location == c.store.Location():
		return place{store: c.store}, name, nil
	case c.OpenStore == nil:
		return place{}, "", fmt.Errorf("%w: %s", snapshotmeta.ErrForeign, location)
	}
	store, err := c.OpenStore(location)
	if err != nil {
		return place{}, "", fmt.Errorf("open %s: %w", location, err)
	}
	return place{store: store, prefix: snapshotmeta.Foreign(location, "")}, name, nil
}

// DiscardShared deletes files of the job's shared directory that the shared-state registry
// says nobody uses any more. One that a link names all the same is kept.
func (c *Cleaner) DiscardShared(ctx context.Context, files []string) error {
	names := make([]string, 0, len(files))
	for _, f := range files {
		if blobstore.CheckName(f) == nil && strings.HasPrefix(f, snapshotmeta.SharedDir+"/") {
			names = append(names, path.Join(snapshotmeta.JobDir(c.job), f))
		}
	}
	retained, err := c.retained(ctx)
	if err == nil {
		err = c.delete(ctx, names, retained)
	}
	if err != nil {
		return fmt.Errorf("discard shared state: %w", err)
	}
	return nil
}

// DiscardJob deletes the job's whole directory but for one blob, its body, and for
// snapshots that other jobs have claimed. The job must be recorded as ended, its
// checkpoints not be retained, and its chain be dropped.
func (c *Cleaner) DiscardJob(ctx context.Context, body string) error {
	var names []string
	claimed := make(map[string]bool)
	err := c.store.List(ctx, snapshotmeta.JobDir(c.job)+"/", func(i blobstore.Info) error {
		if i.Name != body {
			names = append(names, i.Name)
		}
		if path.Base(i.Name) == ClaimFile {
			claimed[path.Dir(i.Name)] = true
		}
		return ctx.Err()
	})
	errs := []error{err}
	for _, name := range names {
		if claimed[path.Dir(name)] {
			continue
		}
		if ctx.Err() != nil {
			errs = append(errs, context.Cause(ctx))
			break
		}
		if err := c.store.Delete(ctx, name); err != nil && !errors.Is(err, blobstore.ErrNotFound) {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("discard checkpoints of job %s: %w", c.job, err)
	}
	return nil
}

// delete deletes the blobs that are not retained. One that is absent is no error.
func (c *Cleaner) delete(ctx context.Context, names []string, retained map[string]bool) error {
	return c.deleteAt(ctx, place{store: c.store}, names, retained)
}

// deleteAt is delete in any store.
func (c *Cleaner) deleteAt(ctx context.Context, at place, names []string, retained map[string]bool) error {
	var errs []error
	for _, name := range names {
		if retained[at.prefix+name] || at.prefix == "" && c.inOpenDir(name) {
			continue
		}
		if err := ctx.Err(); err != nil {
			errs = append(errs, context.Cause(ctx))
			break
		}
		err := at.store.Delete(ctx, name)
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
	at, name, err := c.locate(l.Metadata)
	if err != nil {
		return nil, err
	}
	job := path.Dir(path.Dir(name))
	seen := map[string]bool{at.prefix + name: true, at.prefix + path.Join(path.Dir(name), ClaimFile): true}
	_, err = snapshotmeta.Walk(ctx, at.store, name, handleVisitor(func(h weir.StateHandle) {
		if h.File != "" {
			seen[at.prefix+path.Join(job, h.File)] = true
		}
	}))
	if err != nil {
		return nil, err
	}
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
