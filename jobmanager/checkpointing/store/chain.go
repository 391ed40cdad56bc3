package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/planted"
	"github.com/weirflow/weir/jobmanager/ha"
)

// Completed is a snapshot that is ready to become a link.
type Completed struct {
	Checkpoint weir.CheckpointID
	Kind       weir.SnapshotKind
	Metadata   string // blob name of its _metadata
	Bytes      int64  // of the whole snapshot
	At         time.Time
}

// Chain is a job's chain of completed checkpoints, as its leader sees it. Any
// goroutine may call it; links are added one at a time.
type Chain struct {
	jobs   *ha.JobStore
	job    weir.JobID
	adding chan struct{} // holds one token while a link is added
	mu     struct {
		sync.Mutex
		links []ha.Link // oldest first
		// open are the checkpoints that may become links by a call that is under way
		// or ended in doubt.
		open map[weir.CheckpointID]bool
	}
}

// OpenChain reads the chain of a job.
func OpenChain(ctx context.Context, jobs *ha.JobStore, job weir.JobID) (*Chain, error) {
	links, err := jobs.Links(ctx, job)
	if err != nil {
		return nil, err
	}
	c := &Chain{jobs: jobs, job: job, adding: make(chan struct{}, 1)}
	c.mu.links = links
	c.mu.open = make(map[weir.CheckpointID]bool)
	return c, nil
}

// Links are the links now, oldest first.
func (c *Chain) Links() []ha.Link {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.mu.links)
}

// Newest is the link that a restart resumes from.
func (c *Chain) Newest() (ha.Link, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.mu.links) == 0 {
		return ha.Link{}, false
	}
	return c.mu.links[len(c.mu.links)-1], true
}

// Add makes the snapshot the newest link. From then on it is complete; the permit
// is the proof. Errors: [ha.ErrNotLeader] and [ha.ErrOvertaken] mean that it is not a
// link and will not be one by us: stop, and resolve the job anew from the chain.
// After [ha.ErrDoubtful] it may be one; call again with the same argument. Adding the
// newest link again is success.
func (c *Chain) Add(ctx context.Context, s Completed) (CommitPermit, error) {
	select {
	case c.adding <- struct{}{}:
		defer func() { <-c.adding }()
	case <-ctx.Done():
		return CommitPermit{}, fmt.Errorf("add checkpoint %d: %w (%w)", s.Checkpoint, ha.ErrDoubtful, context.Cause(ctx))
	}
	newest, _ := c.Newest()
	if newest.Checkpoint == s.Checkpoint && newest.Metadata == s.Metadata {
		return CommitPermit{id: s.Checkpoint}, nil
	}
	c.setOpen(s.Checkpoint)
	link, err := c.jobs.AddLink(ctx, c.job, newest, ha.Link{
		Checkpoint: s.Checkpoint, Kind: s.Kind, Metadata: s.Metadata, Bytes: s.Bytes, At: s.At,
	})
	c.added(s.Checkpoint, link, err)
	if err != nil {
		return CommitPermit{}, err
	}
	return CommitPermit{id: s.Checkpoint}, nil
}

func (c *Chain) setOpen(id weir.CheckpointID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.open[id] = true
}

// added notes how adding a link has ended.
func (c *Chain) added(id weir.CheckpointID, link ha.Link, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.mu.links = append(c.mu.links, link)
	}
	if !errors.Is(err, ha.ErrDoubtful) {
		delete(c.mu.open, id)
	}
}

// Remove removes a subsumed checkpoint's link; the newest one is refused with
// [ha.ErrNewestLink]. Its files stay; see [Cleaner]. A checkpoint that has no link is
// no error.
func (c *Chain) Remove(ctx context.Context, id weir.CheckpointID) error {
	links := c.Links()
	i := slices.IndexFunc(links, func(l ha.Link) bool { return l.Checkpoint == id })
	if i < 0 {
		return nil
	}
	if planted.Is(planted.LinkNotRemoved) {
		return c.forget(id)
	}
	if err := c.jobs.RemoveLink(ctx, c.job, links[i].Number); err != nil {
		return err
	}
	return c.forget(id)
}

// forget drops a link that is not in the chain any more from what we know of it.
func (c *Chain) forget(id weir.CheckpointID) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.links = slices.DeleteFunc(c.mu.links, func(l ha.Link) bool { return l.Checkpoint == id })
	return nil
}

// Drop forgets all links: the chain of a job that has ended was removed.
func (c *Chain) Drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.links = nil
}

// mayBeLinked says whether the checkpoint is a link or may become one.
func (c *Chain) mayBeLinked(id weir.CheckpointID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.open[id] || slices.ContainsFunc(c.mu.links, func(l ha.Link) bool { return l.Checkpoint == id })
}

// names says whether a link names this _metadata.
func (c *Chain) names(metadata string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.mu.links, func(l ha.Link) bool { return l.Metadata == metadata })
}

// openIDs are the checkpoints that may become links, in order.
func (c *Chain) openIDs() []weir.CheckpointID {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids := make([]weir.CheckpointID, 0, len(c.mu.open))
	for id := range c.mu.open {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// CheckpointIDCounter hands out a job's checkpoint ids.
type CheckpointIDCounter struct {
	jobs *ha.JobStore
	job  weir.JobID
}

// NewCheckpointIDCounter returns the counter of a job.
func NewCheckpointIDCounter(jobs *ha.JobStore, job weir.JobID) *CheckpointIDCounter {
	return &CheckpointIDCounter{jobs: jobs, job: job}
}

// Next takes the next id: larger than every one taken before, by whatever leader.
func (c *CheckpointIDCounter) Next(ctx context.Context) (weir.CheckpointID, error) {
	return c.jobs.NextCheckpointID(ctx, c.job)
}

// Skip makes the next id larger than last: that of the snapshot of another job that
// this one starts from.
func (c *CheckpointIDCounter) Skip(ctx context.Context, last weir.CheckpointID) error {
	return c.jobs.SkipCheckpointIDs(ctx, c.job, last)
}
