package failover

import "time"

// Kind is a kind of strategy.
type Kind string

// Kinds.
const (
	None        Kind = "none"
	FixedDelay  Kind = "fixed-delay"
	FailureRate Kind = "failure-rate"
)

// Options say when a job is restarted. The keys are those of docs/config.md.
type Options struct {
	// Kind is FixedDelay for jobs with checkpoints and None for others, if not set.
	Kind Kind
	// Attempts is how many restarts FixedDelay allows: without limit (Unlimited).
	Attempts int
	// Delay is the time before each restart: 1 s.
	Delay time.Duration
	// MaxFailures is how many failures within Interval FailureRate survives: 1 in 1 min.
	MaxFailures int
	Interval    time.Duration
}

// Unlimited is a number of attempts that is never used up.
const Unlimited = -1

// Defaults returns the options of a job that sets none.
func Defaults(checkpointing bool) Options {
	return Options{}
}

// Validate reports all faults, joined.
func (o Options) Validate() error { return nil }

// ParseOptions reads the keys "restart-strategy.*" over the defaults. Other keys
// are somebody else's. All faults are reported at once, sorted by key.
func ParseOptions(settings map[string]string, checkpointing bool) (Options, error) {
	return Defaults(checkpointing), nil
}

// Settings prints the effective values under their keys.
func (o Options) Settings() map[string]string { return nil }
