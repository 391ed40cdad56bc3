package snapshot

import (
	"context"
	"fmt"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/internal/planted"
	"github.com/weirflow/weir/snapshotmeta"
	"github.com/weirflow/weir/statebackend"
)

// discardTimeout bounds the deletion of one state file.
const discardTimeout = 30 * time.Second

// async is the asynchronous part of one snapshot. The task writes it before it is
// submitted; from then on the first part is the worker's.
type async struct {
	id       weir.CheckpointID
	options  weir.CheckpointOptions
	refs     []OperatorRef
	captured map[weir.OperatorID]captured
	metrics  weir.CheckpointMetrics
	finished bool // operators had emitted their last record

	// The rest is the task's.

	begun  time.Time // when the synchronous part did
	cancel context.CancelCauseFunc
	// over: it was aborted or declined. It stays until nothing of it runs.
	over    bool
	written bool // the worker has ended
	// capturing: channel state is or may be captured, or still written. undecided
	// outputs may still hand over some.
	capturing bool
	undecided int

	end end
}

// end joins the parts of a checkpoint. Whoever brings the last one acknowledges it, on
// whatever goroutine that is: the task may be in the middle of a long record.
type end struct {
	mu struct {
		sync.Mutex
		over, acknowledged bool
		written            *Result
		awaits             bool // there will be channels
		channels           *Channels
		late               *alignment // barriers came after the trigger
	}
}

// alignment is how long the barriers took in the end.
type alignment struct {
	took  time.Duration
	bytes int64
}

// acknowledge does so if all is there.
func (a *async) acknowledge(o *Options) {
	mu := &a.end.mu
	mu.Lock()
	whole := mu.written != nil && mu.written.Err == nil && (!mu.awaits || mu.channels != nil && mu.channels.Err == nil)
	if !whole || mu.over || mu.acknowledged {
		mu.Unlock()
		return
	}
	mu.acknowledged = true
	r := *mu.written
	if ch := mu.channels; ch != nil {
		r.State.Channels = ch.Handles
		r.Metrics.PersistedBytes = ch.Bytes
		r.Metrics.StateBytes += ch.Bytes
		r.Metrics.Unaligned = r.Metrics.Unaligned || ch.Bytes > 0
		r.Metrics.AsyncDuration = max(r.Metrics.AsyncDuration, time.Since(a.begun)-r.Metrics.SyncDuration)
	}
	if late := mu.late; late != nil {
		r.Metrics.AlignmentDuration, r.Metrics.AlignedBytes = late.took, late.bytes
	}
	mu.Unlock()
	o.Reporter.Acknowledge(a.id, r.State, r.Metrics)
}

// giveUp says that nothing is acknowledged any more, and returns what was written by then
// and is of no use.
func (e *end) giveUp() (useless weir.TaskStateSnapshot) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.over = true
	if e.mu.acknowledged {
		return useless
	}
	if e.mu.written != nil {
		useless = e.mu.written.State
	}
	if e.mu.channels != nil {
		useless.Channels = e.mu.channels.Handles
	}
	e.mu.written, e.mu.channels = nil, nil
	return useless
}

// wrote takes the worker's result. It returns false if it is of no use.
func (e *end) wrote(r Result) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mu.over {
		return false
	}
	e.mu.written = &r
	return true
}

// captured takes the end of the channel state, likewise.
func (e *end) captured(r Channels) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mu.over {
		return false
	}
	e.mu.channels = &r
	return true
}

// captured is what was captured of one operator.
type captured struct {
	keyed    Keyed
	snapshot statebackend.Snapshot // nil: it has no keyed state
	elements [][]byte
}

// Result is how an asynchronous part ended.
type Result struct {
	ID      weir.CheckpointID
	State   weir.TaskStateSnapshot
	Metrics weir.CheckpointMetrics
	Err     error
}

// Channels is how the channel state of a checkpoint ended.
type Channels struct {
	ID      weir.CheckpointID
	Handles []weir.ChannelStateHandle
	Bytes   int64 // captured
	Err     error
}

// run writes the state and posts the result; begun is when it was handed over. It
// ends early when ctx does.
func (a *async) run(ctx context.Context, o *Options, begun time.Time) {
	r := Result{ID: a.id, Metrics: a.metrics}
	r.Err = group.Catch(func() (err error) {
		defer a.release()
		if err := context.Cause(ctx); err != nil {
			return err
		}
		r.State, r.Metrics.StateBytes, err = a.write(ctx, o)
		return err
	})
	r.Metrics.AsyncDuration = time.Since(begun)
	if r.Err == nil && ctx.Err() != nil {
		r.Err = context.Cause(ctx)
		a.discard(ctx, o, r.State)
		r.State = weir.TaskStateSnapshot{}
	}
	if !a.end.wrote(r) {
		a.discard(ctx, o, r.State)
	}
	a.acknowledge(o)
	if err := o.Post(Result{ID: r.ID, Err: r.Err}); err != nil {
		a.discard(ctx, o, a.end.giveUp())
	}
}

// release gives the captured pages back that were not given back yet.
func (a *async) release() {
	for op, c := range a.captured {
		if c.snapshot != nil {
			c.snapshot.Release()
			c.snapshot = nil
			a.captured[op] = c
		}
	}
}

// write materialises what was captured.
func (a *async) write(ctx context.Context, o *Options) (weir.TaskStateSnapshot, int64, error) {
	at, err := o.place(a.options.Location)
	if err != nil {
		return weir.TaskStateSnapshot{}, 0, err
	}
	w := snapshotmeta.NewStateFileWriter(snapshotmeta.StateFileOptions{
		Store: at.store, Dir: at.dir, Location: at.leaf,
		Attempt: o.Attempt, Checkpoint: a.id, InlineThreshold: o.InlineThreshold,
	})
	defer w.Abort()
	state := weir.TaskStateSnapshot{Finished: a.finished}
	for _, ref := range a.refs {
		s, err := a.writeOperator(ctx, w, ref)
		if err != nil {
			return weir.TaskStateSnapshot{}, 0, fmt.Errorf("state of operator %q: %w", ref.Name, err)
		}
		state.Operators = append(state.Operators, s)
	}
	if planted.Is(planted.AcknowledgedBeforeUploaded) {
		return state, w.Bytes(), nil
	}
	if err := w.Commit(ctx); err != nil {
		return weir.TaskStateSnapshot{}, 0, fmt.Errorf("state file: %w", err)
	}
	return state, w.Bytes(), nil
}

func (a *async) writeOperator(ctx context.Context, w *snapshotmeta.StateFileWriter, ref OperatorRef) (weir.OperatorSubtaskState, error) {
	s := weir.OperatorSubtaskState{Operator: ref.ID, Name: ref.Name}
	c := a.captured[ref.ID]
	if c.snapshot != nil {
		h, err := section(ctx, w, ref.Name+"/keyed", func() error {
			_, err := c.snapshot.Write(ctx, w)
			return err
		})
		if err != nil {
			return s, err
		}
		s.Keyed = []weir.KeyedStateHandle{{Range: c.keyed.Range, Backend: c.keyed.Name, Handle: h}}
		s.Schemas = c.snapshot.Schemas()
	}
	for _, e := range c.elements {
		h, err := section(ctx, w, ref.Name+"/element", func() error {
			_, err := w.Write(e)
			return err
		})
		if err != nil {
			return s, err
		}
		s.Elements = append(s.Elements, h)
	}
	return s, nil
}

func section(ctx context.Context, w *snapshotmeta.StateFileWriter, label string, write func() error) (weir.StateHandle, error) {
	if err := w.Begin(ctx, label); err != nil {
		return weir.StateHandle{}, err
	}
	if err := write(); err != nil {
		return weir.StateHandle{}, err
	}
	return w.End()
}

// discard deletes the files of a state that nobody was told of.
func (a *async) discard(ctx context.Context, o *Options, state weir.TaskStateSnapshot) {
	if at, err := o.place(a.options.Location); err == nil {
		discard(ctx, at.store, at.dir, state)
	}
}

// discard deletes the files of a state that nobody was told of. What cannot be deleted
// is found by gc.
func discard(ctx context.Context, store blobstore.Store, dir string, state weir.TaskStateSnapshot) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
	defer cancel()
	for _, file := range filesOf(state) {
		_ = store.Delete(ctx, path.Join(dir, file))
	}
}

// filesOf lists the files that a state's handles name, each once.
func filesOf(state weir.TaskStateSnapshot) (files []string) {
	add := func(h weir.StateHandle) {
		if h.File != "" && !slices.Contains(files, h.File) {
			files = append(files, h.File)
		}
	}
	for _, op := range state.Operators {
		for _, k := range op.Keyed {
			add(k.Handle)
		}
		for _, e := range op.Elements {
			add(e)
		}
	}
	for _, c := range state.Channels {
		add(c.Handle)
	}
	return files
}
