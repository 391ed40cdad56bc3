package snapshot

import (
	"context"
	"fmt"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/statebackend"
)

// Operators are the operators of the task. An error of theirs fails the task.
type Operators interface {
	// PrepareSnapshot may emit records.
	PrepareSnapshot(id weir.CheckpointID) error
	// SnapshotState returns the operators' own state.
	SnapshotState(id weir.CheckpointID) ([]operator.State, error)
	NotifyComplete(id weir.CheckpointID) error
	NotifyAborted(id weir.CheckpointID) error
}

// Outputs are all result partitions of the task.
type Outputs interface {
	// Barrier sends a barrier to every subpartition.
	Barrier(b weir.Barrier)
	// CancelBarrier sends a cancellation marker to every subpartition.
	CancelBarrier(id weir.CheckpointID)
}

// Reporter tells the JobManager. Its methods do not wait.
type Reporter interface {
	Acknowledge(id weir.CheckpointID, state weir.TaskStateSnapshot, m weir.CheckpointMetrics)
	Decline(id weir.CheckpointID, reason weir.FailureReason, message string)
	BarrierSent(op weir.OperatorID, id weir.CheckpointID)
}

// Keyed is the keyed backend of one operator.
type Keyed struct {
	Name    string // of the backend, for example "heap"
	Range   weir.KeyGroupRange
	Backend statebackend.Backend
}

// OperatorRef names an operator of the task.
type OperatorRef struct {
	ID   weir.OperatorID
	Name string
}

// Options of a coordinator.
type Options struct {
	Attempt weir.AttemptID
	// Restored is the checkpoint that the task was restored from, or NoCheckpoint.
	Restored weir.CheckpointID
	// Refs are the operators, head first; Sources those whose coordinators are told
	// of barriers sent (behaviour §24).
	Refs    []OperatorRef
	Sources []weir.OperatorID

	Operators Operators
	Outputs   Outputs
	Reporter  Reporter
	Executor  *Executor
	// Post brings a result to the task, which gives it to Done. It is called by
	// workers; with an error the result is dropped.
	Post func(Result) error

	Store           blobstore.Store
	Directory       string // the job's, in the store
	InlineThreshold int
}

// Coordinator takes one task's snapshots. It is for the task's goroutine.
type Coordinator struct {
	o     Options
	keyed map[weir.OperatorID]Keyed

	last     weir.CheckpointID // newest that was started or aborted on a barrier
	reported weir.CheckpointID // newest that operators were told is complete
	aborted  abortedIDs
	running  map[weir.CheckpointID]*async
	closed   bool
}

// New returns a coordinator.
func New(o Options) *Coordinator {
	return &Coordinator{
		o: o, keyed: map[weir.OperatorID]Keyed{}, running: map[weir.CheckpointID]*async{},
		last: o.Restored, reported: o.Restored,
	}
}

// AddKeyed adds an operator's backend, whose state is part of every snapshot.
func (c *Coordinator) AddKeyed(op weir.OperatorID, k Keyed) { c.keyed[op] = k }

// Running is the number of asynchronous parts that have not ended.
func (c *Coordinator) Running() int { return len(c.running) }

// Trigger takes the snapshot of a checkpoint. m holds what is known of it by now. The
// asynchronous part ends with ctx at the latest. An error fails the task.
func (c *Coordinator) Trigger(ctx context.Context, b weir.Barrier, m weir.CheckpointMetrics) error {
	if b.ID <= c.last || c.closed {
		return nil
	}
	c.last = b.ID
	if c.aborted.take(b.ID) {
		c.o.Outputs.CancelBarrier(b.ID)
		return nil
	}
	begun := time.Now()
	if err := c.o.Operators.PrepareSnapshot(b.ID); err != nil {
		return err
	}
	b.Age += time.Since(begun)
	c.o.Outputs.Barrier(b)
	for _, op := range c.o.Sources {
		c.o.Reporter.BarrierSent(op, b.ID)
	}
	part, err := c.capture(b)
	if err != nil {
		return err
	}
	m.SyncDuration = time.Since(begun)
	part.metrics = m
	c.start(ctx, part)
	return nil
}

// capture is the synchronous part: what a worker can write while the task goes on.
func (c *Coordinator) capture(b weir.Barrier) (_ *async, err error) {
	a := &async{id: b.ID, options: b.Options, refs: c.o.Refs, captured: map[weir.OperatorID]captured{}}
	defer func() {
		if err != nil {
			a.release()
		}
	}()
	for _, ref := range c.o.Refs {
		k, ok := c.keyed[ref.ID]
		if !ok {
			continue
		}
		snap, err := k.Backend.Snapshot()
		if err != nil {
			return nil, fmt.Errorf("snapshot of the keyed state of operator %q: %w", ref.Name, err)
		}
		a.captured[ref.ID] = captured{keyed: k, snapshot: snap}
	}
	states, err := c.o.Operators.SnapshotState(b.ID)
	if err != nil {
		return nil, err
	}
	for _, s := range states {
		own := a.captured[s.Operator]
		own.elements = s.Elements
		a.captured[s.Operator] = own
	}
	return a, nil
}

// start hands the captured part to a worker.
func (c *Coordinator) start(ctx context.Context, a *async) {
	part, cancel := context.WithCancelCause(ctx)
	a.cancel = cancel
	c.running[a.id] = a
	begun := time.Now()
	if err := c.o.Executor.Submit(func() { a.run(part, &c.o, begun) }); err != nil {
		a.release()
		c.Done(ctx, Result{ID: a.id, Err: err})
	}
}

// Done takes the result of an asynchronous part.
func (c *Coordinator) Done(ctx context.Context, r Result) {
	a := c.running[r.ID]
	if a == nil {
		return
	}
	delete(c.running, r.ID)
	a.cancel(nil)
	switch {
	case a.aborted || c.closed:
		// A full executor leaves the file to gc.
		_ = c.o.Executor.Submit(func() { discard(ctx, c.o.Store, c.o.Directory, r.State) })
	case r.Err != nil:
		c.o.Reporter.Decline(r.ID, reasonOf(r.Err), r.Err.Error())
	default:
		c.o.Reporter.Acknowledge(r.ID, r.State, r.Metrics)
	}
}

// Abort gives a checkpoint up because its barriers will not all come: the JobManager
// and everybody downstream learn of it (behaviour §14).
func (c *Coordinator) Abort(id weir.CheckpointID, reason weir.FailureReason) {
	c.last = max(c.last, id)
	c.aborted.take(id)
	c.o.Reporter.Decline(id, reason, "")
	c.o.Outputs.CancelBarrier(id)
}

// NotifyComplete tells operators of a completed checkpoint, unless they were told of it
// or of a newer one.
func (c *Coordinator) NotifyComplete(id weir.CheckpointID) error {
	if id <= c.reported {
		return nil
	}
	c.reported = id
	return c.o.Operators.NotifyComplete(id)
}

// NotifyAborted takes the news that a checkpoint was aborted, with the latest one that
// is complete, whose notification may have been lost (behaviour §8).
func (c *Coordinator) NotifyAborted(id, latestCompleted weir.CheckpointID) error {
	if latestCompleted > weir.NoCheckpoint {
		if err := c.NotifyComplete(latestCompleted); err != nil {
			return err
		}
	}
	if a := c.running[id]; a != nil {
		a.aborted = true
		a.cancel(errAborted)
	} else if id > c.last {
		c.aborted.add(id)
	}
	return c.o.Operators.NotifyAborted(id)
}

// Close cancels what runs: nothing is acknowledged or declined any more.
func (c *Coordinator) Close() {
	c.closed = true
	for _, a := range c.running {
		a.aborted = true
		a.cancel(errAborted)
	}
}
