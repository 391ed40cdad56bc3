package jobmaster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirflow/weir/jobmanager/checkpointing"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/jobmanager/joboption"
)

// intervalSet is a letter: the interval of periodic checkpoints was recorded.
type intervalSet struct{ every time.Duration }

func (intervalSet) letter() {}

// ErrNoCheckpoints says that a job was submitted without an interval: its tasks and its
// restart strategy are those of a job without checkpoints.
var ErrNoCheckpoints = errors.New("the job was submitted without execution.checkpointing.interval")

// CheckInterval says whether the job may have this interval, 0 for none.
func (s *Spec) CheckInterval(every time.Duration) error {
	if !s.Settings.Task.Checkpointing {
		return ErrNoCheckpoints
	}
	_, err := s.Settings.Checkpointing.WithInterval(every)
	return err
}

// SetInterval gives the job another interval, which is recorded already.
func (m *JobMaster) SetInterval(every time.Duration) { m.inbox.Post(intervalSet{every}) }

// setInterval tells the core. Before the job is loaded it waits, since what was loaded
// may be older.
func (l *loop) setInterval(x intervalSet) {
	if l.core == nil {
		l.early = append(l.early, x)
		return
	}
	l.step(Checkpointing{checkpointing.IntervalChanged{Interval: x.every}})
}

// recordedInterval puts the recorded interval, if there is one, in place of that of the
// options.
func (l *loop) recordedInterval(ctx context.Context, settings *joboption.Settings) error {
	every, set, err := l.deps.Jobs.CheckpointInterval(ctx, l.m.record.Job)
	if err != nil || !set {
		return err
	}
	o, err := settings.Checkpointing.WithInterval(every)
	if err != nil {
		return fmt.Errorf("%w: recorded checkpoint interval: %w", ha.ErrCorrupt, err)
	}
	settings.Checkpointing = o
	return nil
}
