package task

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/taskmanager/lifecycle"
)

// run is the life of the task's goroutine. A panic outside the chain is our bug; the
// task gives back what it holds all the same; also if the user's code ends the goroutine.
func (t *Task) run(ctx context.Context) (err error) {
	t.split.begin(time.Now())
	t.showFigures()
	err = group.ErrExited
	defer func() { err = t.giveBack(err) }()
	defer func() { err = t.closeOperators(err) }()
	err = group.Catch(func() error {
		if err := t.prepare(ctx); err != nil {
			return err
		}
		if err := t.recover(ctx); err != nil {
			return err
		}
		t.owner.Changed(t.d.Attempt, lifecycle.Restored{})
		return t.loop(ctx)
	})
	return err
}

// loop polls letters, what overtakes in the inputs, outputs, timers and input in this
// order, and sleeps when there is nothing to do. It returns when the task has done all its work.
func (t *Task) loop(ctx context.Context) error {
	for {
		t.betweenRecords()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := t.read(ctx); err != nil {
			return err
		}
		if t.urgent.Load() && t.urgent.Swap(false) && t.in != nil {
			if err := t.in.PollPriority(ctx); err != nil {
				return err
			}
		}
		if t.linger(ctx) {
			continue
		}
		if t.ended && t.snapshot.Running() == 0 {
			return nil
		}
		if !t.available() {
			t.flushAll()
			t.sleep(ctx, softBackPressured)
			continue
		}
		worked, err := t.work(ctx)
		if err != nil {
			return err
		}
		if worked {
			t.flushIfRequested()
			continue
		}
		t.flushAll()
		t.sleep(ctx, idle)
	}
}

// betweenRecords lets the chain begin a record again: all that was wanted of the task until
// now it finds when it looks.
func (t *Task) betweenRecords() {
	t.suspend.Store(false)
	if t.hastened.Load() {
		t.hastened.Store(false)
	}
}

// work does the next thing there is to do: it fires some of the timers that are due, and
// then takes some input, which timers do not hold up however many are due. It returns
// false if there is nothing.
func (t *Task) work(ctx context.Context) (worked bool, err error) {
	if t.ended {
		return false, nil
	}
	fired := t.timersDue && !t.ending.data && !t.d.Finished
	if fired {
		if err := t.fireTimers(); err != nil || t.suspend.Load() {
			return true, err
		}
	}
	if t.in != nil {
		worked, err = t.workInput(ctx)
	} else {
		worked, err = t.workSource()
	}
	return worked || fired, err
}

func (t *Task) workInput(ctx context.Context) (bool, error) {
	worked, err := t.in.Poll(ctx)
	if err != nil {
		return false, err
	}
	if t.in.DataEnded() && !t.ending.data {
		if err := t.endData(!t.in.Suspended()); err != nil {
			return false, err
		}
	}
	if !t.in.Ended() {
		return worked, nil
	}
	if held := t.held; held != nil {
		t.held = nil
		if err := t.onTrigger(ctx, *held); err != nil {
			return false, err
		}
	}
	return t.endIfDone() || worked, nil
}

func (t *Task) workSource() (bool, error) {
	if t.ending.data {
		return t.endIfDone(), nil
	}
	if !t.sourceUp.Swap(false) {
		return false, nil
	}
	if t.d.Finished {
		return true, t.endData(true)
	}
	status, err := t.chain.Poll(operator.BatchSize)
	if err != nil {
		return false, err
	}
	switch status {
	case operator.SourceMore:
		t.sourceUp.Store(true)
	case operator.SourceEmpty:
		// The source wakes us.
	case operator.SourceEnd:
		return true, t.endData(true)
	}
	return true, nil
}

// sleep waits for a letter, an input, an output or the end.
func (t *Task) sleep(ctx context.Context, a activity) {
	from := time.Now()
	t.split.enter(a, from)
	select {
	case <-t.box.Wake():
	case <-t.wake:
	case <-ctx.Done():
	}
	to := time.Now()
	t.split.enter(busy, to)
	if a == idle && t.in != nil {
		t.in.Meter().Idle(from, to)
		t.idled(from, to)
	}
}

// closeOperators answers the task's letters and closes its operators. It returns the
// error that the task ends with.
func (t *Task) closeOperators(err error) error {
	t.stopTimers()
	if t.snapshot != nil {
		t.snapshot.Close()
	}
	if t.channels.writer != nil {
		t.channels.writer.Close()
	}
	for _, l := range t.box.Close() {
		t.refuse(l)
	}
	if t.chain != nil {
		if closed := t.chain.Do("closing", operator.Chain.Close); err == nil {
			err = closed
		} else if closed != nil {
			t.logger.Warn("operators did not close", zap.Error(closed))
		}
	}
	return err
}

// giveBack gives back everything that the task holds. It returns the error that the task
// ends with.
func (t *Task) giveBack(err error) error {
	if f := t.left(); f != nil && (err == nil || errors.Is(err, group.ErrExited)) {
		err = f
	}
	if t.in != nil {
		t.in.Close()
	}
	if t.io != nil {
		if err != nil {
			t.io.Cancel(err)
		}
		if closed := t.io.Close(); closed != nil && err == nil {
			err = fmt.Errorf("close channels: %w", closed)
		}
	}
	for _, b := range t.keyed {
		if closed := b.Close(); closed != nil && err == nil {
			err = fmt.Errorf("close state: %w", closed)
		}
	}
	if t.metrics != nil {
		t.metrics.Remove()
	}
	return err
}

func (t *Task) stopTimers() {
	for _, timer := range []*group.Timer{t.alarm, t.debloatTimer} {
		if timer != nil {
			timer.Stop()
		}
	}
	t.inputTimer.disarm()
	t.outputTimer.disarm()
}

// refuse answers a letter that the task will not read.
func (t *Task) refuse(l letter) {
	switch l := l.(type) {
	case event:
		t.confirm(l, errEnded)
	case written:
		t.snapshot.Done(context.Background(), l.result)
	case captured:
		t.snapshot.ChannelState(l.id, l.err)
	case trigger, complete, aborted, settled, timeout, alarm, resize:
	}
}

// sink is the task as its input sees it.
type sink struct{ t *Task }

// Process runs a batch.
func (s sink) Process(b *operator.Batch) error { return s.t.chain.Process(b) }

// Watermark advances event time.
func (s sink) Watermark(w weir.Watermark) error {
	return s.t.chain.Do("advancing the watermark", func(c operator.Chain) error { return c.Watermark(w) })
}

// Status tells of idleness.
func (s sink) Status(idle bool) error {
	return s.t.chain.Do("changing status", func(c operator.Chain) error { return c.Status(idle) })
}

// Trigger takes a snapshot.
func (s sink) Trigger(ctx context.Context, b weir.Barrier, m weir.CheckpointMetrics) error {
	return s.t.take(ctx, b, m)
}

// Abort gives a checkpoint up.
func (s sink) Abort(id weir.CheckpointID, reason weir.FailureReason) { s.t.snapshot.Abort(id, reason) }

// EndOfInput tells of the end of an input, unless the job only stops there.
func (s sink) EndOfInput(input int) error {
	if s.t.in.Suspended() || s.t.d.Finished {
		return nil
	}
	return s.t.chain.Do("ending an input", func(c operator.Chain) error { return c.EndOfInput(input) })
}
