package checkpointing

import (
	"errors"
	"fmt"
	"time"

	"github.com/weirflow/weir"
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

// Options are a job's checkpointing options. Their keys are in settings.go.
type Options struct {
	// Interval is the base period; 0 (the default) means no periodic checkpoints. At
	// least 10 ms.
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
	// MaxConcurrent is how many may be pending at a time: 1, 1 to 100.
	MaxConcurrent int
	// Retained is how many completed ones are kept: 2, 1 to 1000.
	Retained int
	// Retention says what becomes of them when the job ends: RetainOnCancellation.
	Retention Retention
	// TolerableFailures is how many failures in a row are tolerated before the job is
	// failed: Unlimited.
	TolerableFailures int
	// Mode is ExactlyOnce.
	Mode Mode
	// Unaligned lets barriers of checkpoints overtake data: false. Needs ExactlyOnce
	// and a MaxConcurrent of 1.
	Unaligned bool
	// AlignedTimeout is, with Unaligned, the age at which a barrier that aligned at
	// first begins to overtake; 0 (the default): it overtakes from the start.
	AlignedTimeout time.Duration
	// SubtasksPerFile is how many subtasks at most share a channel-state file: 5, 1 to
	// 1000.
	SubtasksPerFile int
	// AfterTasksFinish lets checkpoints go on when some tasks have finished: true.
	AfterTasksFinish bool
	// InlineThreshold is the size in bytes up to which state lies in the metadata
	// file: 20 KiB, 0 to 1 MiB.
	InlineThreshold int
	// SavepointDir is the directory of the job's savepoints, below the JobManager's and
	// absolute or relative to it: empty, the JobManager's itself. Who knows that one
	// checks it.
	SavepointDir string
}

// Defaults returns the options of a job that sets none.
func Defaults() Options {
	return Options{
		Timeout: 10 * time.Minute, MaxConcurrent: 1, Retained: 2, TolerableFailures: Unlimited,
		AfterTasksFinish: true, InlineThreshold: 20 << 10, SubtasksPerFile: 5,
	}
}

const (
	maxDuration        = 365 * 24 * time.Hour
	minDuration        = 10 * time.Millisecond // of interval and timeout
	maxRetained        = 1000
	maxConcurrent      = 100
	maxInlineThreshold = 1 << 20
	maxSubtasksPerFile = 1000
)

// alignmentOf is what barriers of a snapshot of this kind say about alignment, and
// the age at which an aligned one begins to overtake, 0: never (behaviour §3).
func (o Options) alignmentOf(kind weir.SnapshotKind) (weir.Alignment, time.Duration) {
	switch {
	case o.Mode != ExactlyOnce:
		return weir.AtLeastOnce, 0
	case kind.IsSavepoint() || !o.Unaligned:
		return weir.Aligned, 0
	case o.AlignedTimeout == 0:
		return weir.Unaligned, 0
	default:
		return weir.Aligned, o.AlignedTimeout
	}
}

// minPause is the one in force (behaviour §2).
func (o Options) minPause() time.Duration { return min(o.MinPause, maxDuration) }

// WithInterval returns the options with another interval, 0 for none, or why not.
func (o Options) WithInterval(interval time.Duration) (Options, error) {
	o.Interval = interval
	if interval == 0 {
		o.BacklogInterval, o.BacklogIntervalSet = 0, false
	}
	return o, o.Validate()
}

// Validate reports all faults, joined.
func (o Options) Validate() error {
	var faults []error
	need := func(ok bool, key, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(prefix+key+": "+format, args...))
		}
	}
	within := func(d, least time.Duration) bool { return d >= least && d <= maxDuration }
	need(o.Interval == 0 || within(o.Interval, minDuration), keyInterval, "%s is not between %s and 365 days", o.Interval, minDuration)
	need(within(o.Timeout, minDuration), keyTimeout, "%s is not between %s and 365 days", o.Timeout, minDuration)
	need(o.MinPause >= 0, keyMinPause, "%s is negative", o.MinPause)
	need(o.MaxConcurrent >= 1, keyMaxConcurrent, "%d is below 1", o.MaxConcurrent)
	need(o.Retained >= 1 && o.Retained <= maxRetained, keyRetained, "%d is not between 1 and %d", o.Retained, maxRetained)
	need(o.TolerableFailures >= Unlimited, keyTolerable, "%d is negative", o.TolerableFailures)
	need(o.MaxConcurrent <= maxConcurrent, keyMaxConcurrent, "%d is above %d", o.MaxConcurrent, maxConcurrent)
	need(o.Retention <= NoExternalized, keyRetention, "%d is unknown", o.Retention)
	need(o.Mode <= AtLeastOnce, keyMode, "%d is unknown", o.Mode)
	need(o.InlineThreshold >= 0 && o.InlineThreshold <= maxInlineThreshold, keyInline, "%d is not between 0 and %d bytes", o.InlineThreshold, maxInlineThreshold)
	need(o.AlignedTimeout >= 0 && o.AlignedTimeout <= maxDuration, keyAlignedTimeout, "%s is not between 0 and 365 days", o.AlignedTimeout)
	need(o.SubtasksPerFile >= 1 && o.SubtasksPerFile <= maxSubtasksPerFile, keySubtasksPerFile, "%d is not between 1 and %d", o.SubtasksPerFile, maxSubtasksPerFile)
	need(!o.Unaligned || o.Mode == ExactlyOnce, keyUnaligned, "contradicts %s = %s: only exactly-once checkpoints have barriers that overtake", prefix+keyMode, o.Mode)
	need(!o.Unaligned || o.MaxConcurrent == 1, keyUnaligned, "contradicts %s = %d: one unaligned checkpoint at a time", prefix+keyMaxConcurrent, o.MaxConcurrent)
	if o.BacklogIntervalSet {
		need(o.Interval > 0, keyBacklogInterval, "needs %s", prefix+keyInterval)
		need(o.BacklogInterval == 0 || within(o.BacklogInterval, o.Interval), keyBacklogInterval,
			"%s is neither 0 nor between the interval, %s, and 365 days", o.BacklogInterval, o.Interval)
	}
	return errors.Join(faults...)
}
