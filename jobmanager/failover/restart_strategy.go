package failover

import (
	"fmt"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/assert"
)

// Decision is what a strategy says to a failure.
type Decision struct {
	Restart bool
	After   time.Duration // to wait before tasks are deployed again
	Why     string        // for people, if Restart is false
}

// RestartStrategy says whether a job is restarted after a failure. Only the job's
// loop calls it.
type RestartStrategy interface {
	fmt.Stringer
	// Failed counts a failure at this time and decides.
	Failed(now time.Time, cause *weir.Failure) Decision
}

var (
	_ RestartStrategy = none{}
	_ RestartStrategy = (*fixedDelay)(nil)
	_ RestartStrategy = (*failureRate)(nil)
)

// New returns the strategy of valid options.
func New(o Options) RestartStrategy {
	switch o.Kind {
	case FixedDelay:
		return &fixedDelay{attempts: o.Attempts, delay: o.Delay}
	case FailureRate:
		return &failureRate{most: o.MaxFailures, interval: o.Interval, delay: o.Delay}
	}
	assert.That(o.Kind == None, "no restart strategy is called %s", string(o.Kind))
	return none{}
}

func giveUp(format string, args ...any) Decision {
	return Decision{Why: fmt.Sprintf(format, args...)}
}

// hopeless says whether restarting cannot help.
func hopeless(cause *weir.Failure) (Decision, bool) {
	if cause != nil && cause.NoRetry {
		return giveUp("restarting cannot help"), true
	}
	return Decision{}, false
}

// none never restarts.
type none struct{}

func (none) String() string { return string(None) }

func (none) Failed(time.Time, *weir.Failure) Decision {
	return giveUp("the job has no restart strategy")
}

// fixedDelay restarts a number of times in all, each after the same delay.
type fixedDelay struct {
	attempts int // or Unlimited
	delay    time.Duration
	used     int
}

func (f *fixedDelay) String() string {
	if f.attempts == Unlimited {
		return fmt.Sprintf("%s: %s, without limit", FixedDelay, f.delay)
	}
	return fmt.Sprintf("%s: %s, %d of %d used", FixedDelay, f.delay, f.used, f.attempts)
}

func (f *fixedDelay) Failed(_ time.Time, cause *weir.Failure) Decision {
	if d, is := hopeless(cause); is {
		return d
	}
	if f.attempts != Unlimited && f.used >= f.attempts {
		return giveUp("all %d restarts are used up", f.attempts)
	}
	f.used++
	return Decision{Restart: true, After: f.delay}
}

// failureRate restarts as long as there are not more than so many failures within
// an interval.
type failureRate struct {
	most     int
	interval time.Duration
	delay    time.Duration
	recent   []time.Time // the last failures, oldest first, at most `most`
}

func (f *failureRate) String() string {
	return fmt.Sprintf("%s: %d in %s, %s", FailureRate, f.most, f.interval, f.delay)
}

func (f *failureRate) Failed(now time.Time, cause *weir.Failure) Decision {
	if d, is := hopeless(cause); is {
		return d
	}
	if len(f.recent) == f.most {
		if now.Sub(f.recent[0]) <= f.interval {
			return giveUp("more than %d failures within %s", f.most, f.interval)
		}
		f.recent = append(f.recent[:0], f.recent[1:]...)
	}
	f.recent = append(f.recent, now)
	return Decision{Restart: true, After: f.delay}
}
