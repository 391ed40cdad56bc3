package failover

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind is a kind of strategy.
type Kind string

// Kinds.
const (
	None        Kind = "none"
	FixedDelay  Kind = "fixed-delay"
	FailureRate Kind = "failure-rate"
)

// Unlimited is a number of attempts that is never used up.
const Unlimited = -1

// Options say when a job is restarted.
type Options struct {
	// Kind is FixedDelay for jobs with checkpoints and None for others.
	Kind Kind
	// Attempts is how many restarts FixedDelay allows: Unlimited, or from 0.
	Attempts int
	// Delay is the time before each restart: 1 s, 0 to 1 day.
	Delay time.Duration
	// MaxFailures is how many failures within Interval FailureRate survives: 1 in
	// 1 min; from 1 to 10,000.
	MaxFailures int
	Interval    time.Duration
}

const (
	maxDelay       = 24 * time.Hour
	maxMaxFailures = 10_000
)

// Defaults returns the options of a job that sets none.
func Defaults(checkpointing bool) Options {
	o := Options{Kind: None, Attempts: Unlimited, Delay: time.Second, MaxFailures: 1, Interval: time.Minute}
	if checkpointing {
		o.Kind = FixedDelay
	}
	return o
}

// Keys.
const (
	prefix         = "restart-strategy."
	keyType        = prefix + "type"
	keyAttempts    = prefix + "fixed-delay.attempts"
	keyDelay       = prefix + "fixed-delay.delay"
	keyMaxFailures = prefix + "failure-rate.max-failures-per-interval"
	keyInterval    = prefix + "failure-rate.failure-rate-interval"
	keyRateDelay   = prefix + "failure-rate.delay"
	later          = prefix + "exponential-delay."
)

// Errors of ParseOptions.
var (
	// ErrUnsupported is wrapped for what is known but not supported yet.
	ErrUnsupported = errors.New("not supported yet")
	// ErrUnknownKey is wrapped for keys nobody knows.
	ErrUnknownKey = errors.New("unknown key")
)

// Validate reports all faults, joined.
func (o Options) Validate() error {
	var faults []error
	need := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	need(o.Kind == None || o.Kind == FixedDelay || o.Kind == FailureRate, "%s: %q is unknown", keyType, o.Kind)
	need(o.Attempts >= Unlimited, "%s: %d is negative", keyAttempts, o.Attempts)
	need(o.Delay >= 0 && o.Delay <= maxDelay, "%s: %s is not between 0 and 1 day", o.delayKey(), o.Delay)
	need(o.MaxFailures >= 1 && o.MaxFailures <= maxMaxFailures, "%s: %d is not between 1 and %d", keyMaxFailures, o.MaxFailures, maxMaxFailures)
	need(o.Interval > 0, "%s: %s is not positive", keyInterval, o.Interval)
	return errors.Join(faults...)
}

func (o Options) delayKey() string {
	if o.Kind == FailureRate {
		return keyRateDelay
	}
	return keyDelay
}

// ParseOptions reads the keys "restart-strategy.*" over the defaults. Other keys
// are somebody else's; keys of a strategy that is not chosen are checked, and
// without effect. All faults are reported at once, sorted by key.
func ParseOptions(settings map[string]string, checkpointing bool) (Options, error) {
	o := Defaults(checkpointing)
	delays := map[Kind]time.Duration{}
	var faults []error
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		if !strings.HasPrefix(key, prefix) {
			continue
		}
		if err := o.set(key, strings.TrimSpace(settings[key]), delays); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", key, err))
		}
	}
	if d, ok := delays[o.Kind]; ok {
		o.Delay = d
	}
	if err := errors.Join(faults...); err != nil {
		return Options{}, err
	}
	if err := o.Validate(); err != nil {
		return Options{}, err
	}
	return o, nil
}

func (o *Options) set(key, value string, delays map[Kind]time.Duration) (err error) {
	switch key {
	case keyType:
		return o.setKind(value)
	case keyAttempts:
		if strings.EqualFold(value, "unlimited") {
			value = strconv.Itoa(math.MaxInt32)
		}
		o.Attempts, err = strconv.Atoi(value)
		switch {
		case err == nil && o.Attempts < 0:
			return fmt.Errorf("%d is negative", o.Attempts)
		case o.Attempts >= math.MaxInt32:
			o.Attempts = Unlimited
		}
	case keyDelay:
		delays[FixedDelay], err = parseDuration(value)
	case keyRateDelay:
		delays[FailureRate], err = parseDuration(value)
	case keyMaxFailures:
		o.MaxFailures, err = strconv.Atoi(value)
	case keyInterval:
		o.Interval, err = parseDuration(value)
	default:
		if strings.HasPrefix(key, later) {
			return ErrUnsupported
		}
		return ErrUnknownKey
	}
	return err
}

func (o *Options) setKind(value string) error {
	switch strings.ToLower(value) {
	case "none", "off", "disable":
		o.Kind = None
	case string(FixedDelay), "fixeddelay":
		o.Kind = FixedDelay
	case string(FailureRate), "failurerate":
		o.Kind = FailureRate
	case "exponential-delay", "exponentialdelay":
		return fmt.Errorf("%w: %q", ErrUnsupported, value)
	default:
		return fmt.Errorf("%q is not one of %s, %s, %s", value, None, FixedDelay, FailureRate)
	}
	return nil
}

// Settings prints the effective values under their keys.
func (o Options) Settings() map[string]string {
	s := map[string]string{keyType: string(o.Kind)}
	switch o.Kind {
	case FixedDelay:
		s[keyAttempts], s[keyDelay] = strconv.Itoa(o.Attempts), o.Delay.String()
		if o.Attempts == Unlimited {
			s[keyAttempts] = "unlimited"
		}
	case FailureRate:
		s[keyMaxFailures], s[keyInterval], s[keyRateDelay] = strconv.Itoa(o.MaxFailures), o.Interval.String(), o.Delay.String()
	}
	return s
}

// parseDuration reads Go's form, and the field's: a number and a unit, with or
// without a space; a plain number counts milliseconds.
func parseDuration(text string) (time.Duration, error) {
	text = strings.ReplaceAll(text, " ", "")
	if _, err := strconv.Atoi(text); err == nil {
		text += "ms"
	}
	for long, short := range map[string]string{"min": "m", "sec": "s"} {
		text = strings.Replace(text, long, short, 1)
	}
	return time.ParseDuration(text)
}
