package snapshot

import (
	"context"
	"fmt"
	"sync"
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
	// Barrier sends a barrier to every subpartition, and hands what it overtakes to the
	// writer of channel state. It returns how many outputs may hand over more for it:
	// each is told of by Decided.
	Barrier(b weir.Barrier) (undecided int)
	// TimeoutBarrier lets a barrier overtake wherever it was not read yet.
	TimeoutBarrier(id weir.CheckpointID)
	// AbortBarrier lets a barrier stay where it is.
	AbortBarrier(id weir.CheckpointID)
	// CancelBarrier sends a cancellation marker to every subpartition.
	CancelBarrier(id weir.CheckpointID)
	// ArmTimer asks for a call of Timeout after a time, instead of an earlier one that
	// is due; DisarmTimer calls it off.
	ArmTimer(id weir.CheckpointID, after time.Duration)
	DisarmTimer()
}

// ChannelState is the task's writer of channel state. Each Start without an error is
// answered by a call of ChannelState.
type ChannelState interface {
	Start(id weir.CheckpointID, location string) error
	FinishInput(id weir.CheckpointID)
	FinishOutput(id weir.CheckpointID)
	Abort(id weir.CheckpointID, cause error)
}

// Reporter tells the JobManager. Its methods do not wait; Acknowledge is called from any
// goroutine.
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
	// Channels is nil if the job's checkpoints never overtake data.
	Channels ChannelState
	// Post brings a result to the task, which gives it to Done. It is called by
	// workers; with an error the result is dropped.
	Post func(Result) error

	Store           blobstore.Store
	Directory       string // the job's, in the store
	InlineThreshold int
	// OpenStore opens another store by its location, for savepoints that go there; nil:
	// they are declined.
	OpenStore func(location string) (blobstore.Store, error)
}

// Coordinator takes one task's snapshots. It is for the task's goroutine.
type Coordinator struct {
	o     Options
	keyed map[weir.OperatorID]Keyed

	last     weir.CheckpointID // newest that was started or aborted on a barrier
	reported weir.CheckpointID // newest that operators were told is complete
	aborted  abortedIDs
	running  map[weir.CheckpointID]*async
	// parts are the same, for other goroutines.
	parts struct {
		sync.Mutex
		of map[weir.CheckpointID]*async
	}
	over   weir.CheckpointID // the checkpoint that was given up last after its start
	closed bool
	// finished: operators have emitted their last record. What is acknowledged from
	// now on says so.
	finished bool
}

// New returns a coordinator.
func New(o Options) *Coordinator {
	c := &Coordinator{
		o: o, keyed: map[weir.OperatorID]Keyed{}, running: map[weir.CheckpointID]*async{},
		last: o.Restored, reported: o.Restored,
	}
	c.parts.of = map[weir.CheckpointID]*async{}
	return c
}

// AddKeyed adds an operator's backend, whose state is part of every snapshot.
func (c *Coordinator) AddKeyed(op weir.OperatorID, k Keyed) { c.keyed[op] = k }

// OperatorsFinished says that operators have emitted their last record. Snapshots that
// are triggered from now on say so.
func (c *Coordinator) OperatorsFinished() { c.finished = true }

// Last is the newest checkpoint that was started, or aborted on its barriers.
func (c *Coordinator) Last() weir.CheckpointID { return c.last }

// Started says whether a checkpoint was started and not given up.
func (c *Coordinator) Started(id weir.CheckpointID) bool {
	a := c.running[id]
	return a != nil && !a.over
}

// Running is the number of asynchronous parts that have not ended.
func (c *Coordinator) Running() int { return len(c.running) }

// Trigger takes the snapshot of a checkpoint. m holds what is known of it by now. The
// asynchronous part ends with ctx at the latest. An error fails the task.
//
// The options are those with which the barrier goes on: what an edge forced to align is
// turned back already (package barrier).
func (c *Coordinator) Trigger(ctx context.Context, b weir.Barrier, m weir.CheckpointMetrics) error {
	if b.ID <= c.last || c.closed {
		return nil
	}
	c.last = b.ID
	c.o.Outputs.DisarmTimer()
	if c.aborted.take(b.ID) {
		c.abortChannels(b.ID, errAborted)
		c.o.Outputs.CancelBarrier(b.ID)
		return nil
	}
	part := &async{id: b.ID, options: b.Options, refs: c.o.Refs, captured: map[weir.OperatorID]captured{}, finished: c.finished}
	c.remember(part)
	if err := c.startChannels(part); err != nil {
		c.forget(b.ID)
		return err
	}
	if err := c.synchronous(part, b); err != nil {
		c.forget(b.ID)
		part.release()
		c.abortChannels(b.ID, err)
		return err
	}
	m.SyncDuration = time.Since(part.begun)
	part.metrics = m
	c.start(ctx, part)
	return nil
}

// startChannels begins to capture what is in flight, if the checkpoint may overtake any.
// One that aligned here has no input in flight; its barrier may still time out in the
// outputs.
func (c *Coordinator) startChannels(a *async) error {
	timeoutable := mayTimeOut(a.options)
	if c.o.Channels == nil || !timeoutable && a.options.Alignment != weir.Unaligned {
		return nil
	}
	a.end.mu.awaits = true // nobody else knows of it yet
	if err := c.o.Channels.Start(a.id, a.options.Location); err != nil {
		return fmt.Errorf("channel state of checkpoint %d: %w", a.id, err)
	}
	a.capturing = true
	if timeoutable {
		c.o.Channels.FinishInput(a.id)
	}
	return nil
}

func mayTimeOut(o weir.CheckpointOptions) bool {
	return o.Alignment == weir.Aligned && o.Timeout > 0 && !o.Kind.IsSavepoint()
}

// synchronous is what happens between two records: the barrier goes out, then state is
// captured. After an error the barrier may have left.
func (c *Coordinator) synchronous(a *async, b weir.Barrier) error {
	a.begun = time.Now()
	if err := c.o.Operators.PrepareSnapshot(b.ID); err != nil {
		return err
	}
	b.Age += time.Since(a.begun)
	a.undecided = c.o.Outputs.Barrier(b)
	switch {
	case a.capturing && a.undecided == 0:
		c.o.Channels.FinishOutput(b.ID)
	case a.capturing:
		c.o.Outputs.ArmTimer(b.ID, max(0, b.Options.Timeout-b.Age))
	}
	for _, op := range c.o.Sources {
		c.o.Reporter.BarrierSent(op, b.ID)
	}
	return c.capture(a)
}

// capture takes what a worker can write while the task goes on.
func (c *Coordinator) capture(a *async) error {
	for _, ref := range c.o.Refs {
		k, ok := c.keyed[ref.ID]
		if !ok {
			continue
		}
		snap, err := k.Backend.Snapshot()
		if err != nil {
			return fmt.Errorf("snapshot of the keyed state of operator %q: %w", ref.Name, err)
		}
		a.captured[ref.ID] = captured{keyed: k, snapshot: snap}
	}
	states, err := c.o.Operators.SnapshotState(a.id)
	if err != nil {
		return err
	}
	for _, s := range states {
		own := a.captured[s.Operator]
		own.elements = s.Elements
		a.captured[s.Operator] = own
	}
	return nil
}

// start hands the captured part to a worker.
func (c *Coordinator) start(ctx context.Context, a *async) {
	part, cancel := context.WithCancelCause(ctx)
	a.cancel = cancel
	begun := time.Now()
	if err := c.o.Executor.Submit(func() { a.run(part, &c.o, begun) }); err != nil {
		a.release()
		c.Done(ctx, Result{ID: a.id, Err: err})
	}
}

// Done takes the end of an asynchronous part.
func (c *Coordinator) Done(ctx context.Context, r Result) {
	a := c.running[r.ID]
	if a == nil {
		return
	}
	a.cancel(nil)
	a.written = true
	if r.Err != nil && !a.over && !c.closed {
		c.decline(a, reasonOf(r.Err), r.Err)
	}
	c.forgetEnded(a)
}

// Captured takes the end of a checkpoint's channel state: handles, or why there are none.
// It may be called from any goroutine; the task is told with ChannelState then.
func (c *Coordinator) Captured(ctx context.Context, r Channels) {
	c.parts.Lock()
	a := c.parts.of[r.ID]
	c.parts.Unlock()
	if a == nil || !a.end.captured(r) {
		c.discard(ctx, "", weir.TaskStateSnapshot{Channels: r.Handles})
		return
	}
	a.acknowledge(&c.o)
}

// ChannelState follows Captured, with its error.
func (c *Coordinator) ChannelState(id weir.CheckpointID, err error) {
	a := c.running[id]
	if a == nil {
		return
	}
	a.capturing = false
	if err != nil && !a.over && !c.closed {
		c.decline(a, reasonOf(err), err)
	}
	c.forgetEnded(a)
}

// forgetEnded drops a checkpoint of which nothing runs any more.
func (c *Coordinator) forgetEnded(a *async) {
	if a.written && (!a.capturing || c.closed) {
		c.forget(a.id)
	}
}

func (c *Coordinator) forget(id weir.CheckpointID) {
	delete(c.running, id)
	c.parts.Lock()
	defer c.parts.Unlock()
	delete(c.parts.of, id)
}

func (c *Coordinator) remember(a *async) {
	c.running[a.id] = a
	c.parts.Lock()
	defer c.parts.Unlock()
	c.parts.of[a.id] = a
}

// decline gives a started checkpoint up because a part of it failed.
func (c *Coordinator) decline(a *async, reason weir.FailureReason, cause error) {
	c.o.Reporter.Decline(a.id, reason, cause.Error())
	c.giveUp(a, cause)
}

// giveUp lets what a checkpoint still does end, and deletes what it wrote.
func (c *Coordinator) giveUp(a *async, cause error) {
	a.over, c.over = true, a.id
	if a.cancel != nil {
		a.cancel(cause)
	}
	c.abortChannels(a.id, cause)
	c.discard(context.Background(), a.options.Location, a.end.giveUp())
}

// abortChannels lets nothing be captured any more.
func (c *Coordinator) abortChannels(id weir.CheckpointID, cause error) {
	if c.o.Channels != nil {
		c.o.Channels.Abort(id, cause)
	}
	if id == c.last {
		c.o.Outputs.DisarmTimer()
	}
	c.o.Outputs.AbortBarrier(id)
}

// discard deletes the files of a state that nobody will be told of. A full executor
// leaves them to gc.
func (c *Coordinator) discard(ctx context.Context, location string, state weir.TaskStateSnapshot) {
	if len(filesOf(state)) == 0 {
		return
	}
	if at, err := c.o.place(location); err == nil {
		_ = c.o.Executor.Submit(func() { discard(ctx, at.store, at.dir, state) })
	}
}

// Capturing says whether what is in flight is wanted for a checkpoint.
func (c *Coordinator) Capturing(id weir.CheckpointID) bool {
	a := c.running[id]
	return a != nil && a.capturing && !a.over
}

// InputCaptured says that all input of a checkpoint is captured.
func (c *Coordinator) InputCaptured(id weir.CheckpointID) {
	if c.Capturing(id) {
		c.o.Channels.FinishInput(id)
	}
}

// Aligned says how long the barriers of a checkpoint took that did not wait for them.
func (c *Coordinator) Aligned(id weir.CheckpointID, took time.Duration, bytes int64) {
	if a := c.running[id]; a != nil {
		a.end.mu.Lock()
		defer a.end.mu.Unlock()
		a.end.mu.late = &alignment{took, bytes}
	}
}

// Timeout says that the outputs' timer fired.
func (c *Coordinator) Timeout(id weir.CheckpointID) {
	if c.Capturing(id) {
		c.o.Outputs.TimeoutBarrier(id)
	}
}

// Decided says that an output has handed over all of a checkpoint that it will.
func (c *Coordinator) Decided(id weir.CheckpointID) {
	a := c.running[id]
	if a == nil || a.undecided == 0 {
		return
	}
	if a.undecided--; a.undecided == 0 && c.Capturing(id) {
		if id == c.last {
			c.o.Outputs.DisarmTimer()
		}
		c.o.Channels.FinishOutput(id)
	}
}

// Abort gives a checkpoint up because its barriers will not all come, or what was in
// flight cannot be captured: the JobManager, unless it said so itself, and everybody
// downstream learn of it (behaviour §14).
func (c *Coordinator) Abort(id weir.CheckpointID, reason weir.FailureReason) {
	c.last = max(c.last, id)
	known := c.aborted.take(id)
	a := c.running[id]
	switch {
	case id == c.over:
		return
	case a != nil:
		c.giveUp(a, errAborted)
	default:
		c.abortChannels(id, errAborted)
	}
	if !known {
		c.o.Reporter.Decline(id, reason, "")
	}
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
	if a := c.running[id]; a != nil && !a.over {
		c.giveUp(a, errAborted)
	} else if id > c.last {
		c.aborted.add(id)
	}
	return c.o.Operators.NotifyAborted(id)
}

// Close cancels what runs: nothing is acknowledged or declined any more.
func (c *Coordinator) Close() {
	c.closed = true
	for _, a := range c.running {
		if !a.over {
			c.giveUp(a, errAborted)
		}
	}
}
