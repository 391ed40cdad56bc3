package checkpointing

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

// prefix is what all keys of ours begin with.
const prefix = "execution.checkpointing."

// Keys, without prefix.
const (
	keyInterval         = "interval"
	keyBacklogInterval  = "interval-during-backlog"
	keyMode             = "mode"
	keyTimeout          = "timeout"
	keyMinPause         = "min-pause"
	keyMaxConcurrent    = "max-concurrent-checkpoints"
	keyTolerable        = "tolerable-failed-checkpoints"
	keyRetention        = "externalized-checkpoint-retention"
	keyRetained         = "num-retained"
	keyAfterTasksFinish = "checkpoints-after-tasks-finish"
	keyInline           = "data-inline-threshold"
	keySavepointDir     = "savepoint-dir"
	keyUnaligned        = "unaligned.enabled"
	keyAlignedTimeout   = "aligned-checkpoint-timeout"
	keySubtasksPerFile  = "unaligned.max-subtasks-per-channel-state-file"
)

// fixed are keys that are known but have one value for now: the one that says what
// we do. Empty: the key cannot be set at all.
var fixed = map[string]string{
	"unaligned.during-recovery.enabled": "false",
	"incremental":                       "false",
	"local-backup.enabled":              "false",
	"local-backup.dirs":                 "",
	"file-merging.enabled":              "false",
	"snapshot-compression":              "false",
	"region.enabled":                    "false",
	"create-subdir":                     "true",
	"storage":                           "filesystem",
	"dir":                               "",
	"write-buffer-size":                 "",
	"cleaner.parallel-mode":             "",
	"recover-without-channel-state.checkpoint-id": "-1",
	"file-merging.across-checkpoint-boundary":     "",
	"file-merging.max-file-size":                  "",
	"file-merging.pool-blocking":                  "",
	"file-merging.max-space-amplification":        "",
	"file-merging.max-subtasks-per-file":          "",
	"region.max-consecutive-failures":             "",
	"region.max-failure-ratio":                    "",
}

// settled are keys of which both values are accepted and change nothing: what they
// ask for is always so, or cannot occur.
var settled = map[string]bool{
	"unaligned.forced":                               true, // there are no graphs with loops
	"unaligned.interruptible-timers.enabled":         true, // firing timers always give way
	"unaligned.recover-output-on-downstream.enabled": true, // always so
}

// ErrUnsupported is wrapped by the errors of ParseOptions for what is known but not
// supported yet.
var ErrUnsupported = errors.New("not supported yet")

// ErrUnknownKey is wrapped by the errors of ParseOptions for keys nobody knows.
var ErrUnknownKey = errors.New("unknown key")

// ParseOptions reads the keys "execution.checkpointing.*" over the defaults. Other
// keys are somebody else's. All faults are reported at once, sorted by key; the
// options are valid if there are none.
func ParseOptions(settings map[string]string) (Options, error) {
	o := Defaults()
	var faults []error
	for _, full := range slices.Sorted(maps.Keys(settings)) {
		key, ours := strings.CutPrefix(full, prefix)
		if !ours {
			continue
		}
		if err := o.set(strings.TrimSuffix(key, ".enabled"), key, strings.TrimSpace(settings[full])); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", full, err))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return Options{}, err
	}
	if err := o.Validate(); err != nil {
		return Options{}, err
	}
	return o, nil
}

// set sets one option. short is the key without a final ".enabled".
func (o *Options) set(short, key, value string) (err error) {
	switch {
	case key == keyInterval:
		o.Interval, err = parseDuration(value)
		if err == nil && o.Interval == 0 {
			return errors.New("0 is no interval; leave the key out for no periodic checkpoints")
		}
	case key == keyBacklogInterval:
		o.BacklogIntervalSet = true
		o.BacklogInterval, err = parseDuration(value)
	case key == keyMode:
		o.Mode, err = parseMode(value)
	case key == keyTimeout:
		o.Timeout, err = parseDuration(value)
	case key == keyMinPause:
		o.MinPause, err = parseDuration(value)
	case key == keyMaxConcurrent:
		o.MaxConcurrent, err = strconv.Atoi(value)
	case key == keyTolerable:
		o.TolerableFailures, err = parseTolerable(value)
	case key == keyRetention:
		o.Retention, err = parseRetention(value)
	case key == keyRetained:
		o.Retained, err = strconv.Atoi(value)
	case short == keyAfterTasksFinish:
		o.AfterTasksFinish, err = strconv.ParseBool(value)
	case key == keySavepointDir:
		o.SavepointDir = value
	case key == keyInline:
		o.InlineThreshold, err = parseSize(value)
	case short == strings.TrimSuffix(keyUnaligned, ".enabled"):
		o.Unaligned, err = strconv.ParseBool(value)
	case key == keyAlignedTimeout:
		o.AlignedTimeout, err = parseDuration(value)
	case key == keySubtasksPerFile:
		o.SubtasksPerFile, err = strconv.Atoi(value)
	case settled[key]:
		_, err = strconv.ParseBool(value)
	default:
		return takeFixed(key, value)
	}
	return err
}

// takeFixed takes the one value that a key has for now.
func takeFixed(key, value string) error {
	only, known := fixed[key]
	switch {
	case !known:
		return ErrUnknownKey
	case only == "" || !strings.EqualFold(strings.TrimSpace(strings.TrimSuffix(value, "ms")), only):
		return fmt.Errorf("%w: %q", ErrUnsupported, value)
	}
	return nil
}

func parseMode(value string) (Mode, error) {
	for _, m := range []Mode{ExactlyOnce, AtLeastOnce} {
		if strings.EqualFold(value, m.String()) {
			return m, nil
		}
	}
	return 0, fmt.Errorf("%q is not one of %s, %s", value, ExactlyOnce, AtLeastOnce)
}

// parseTolerable reads a number. "unlimited" and what the field writes for it, the
// largest number of 32 bits, are without limit.
func parseTolerable(value string) (int, error) {
	if strings.EqualFold(value, "unlimited") {
		return Unlimited, nil
	}
	n, err := strconv.Atoi(value)
	switch {
	case err != nil:
		return 0, err
	case n < 0:
		return 0, fmt.Errorf("%d is negative; without a limit it is %q", n, "unlimited")
	case n >= math.MaxInt32:
		return Unlimited, nil
	}
	return n, nil
}

// Settings prints the effective values under their keys.
func (o Options) Settings() map[string]string {
	s := map[string]string{
		keyMode:             o.Mode.String(),
		keyTimeout:          o.Timeout.String(),
		keyMinPause:         o.MinPause.String(),
		keyMaxConcurrent:    strconv.Itoa(o.MaxConcurrent),
		keyTolerable:        strconv.Itoa(o.TolerableFailures),
		keyRetained:         strconv.Itoa(o.Retained),
		keyRetention:        o.Retention.String(),
		keyAfterTasksFinish: strconv.FormatBool(o.AfterTasksFinish),
		keyInline:           strconv.Itoa(o.InlineThreshold),
		keyUnaligned:        strconv.FormatBool(o.Unaligned),
		keyAlignedTimeout:   o.AlignedTimeout.String(),
		keySubtasksPerFile:  strconv.Itoa(o.SubtasksPerFile),
	}
	if o.TolerableFailures == Unlimited {
		s[keyTolerable] = "unlimited"
	}
	if o.SavepointDir != "" {
		s[keySavepointDir] = o.SavepointDir
	}
	if o.Interval > 0 {
		s[keyInterval] = o.Interval.String()
	}
	if o.BacklogIntervalSet {
		s[keyBacklogInterval] = o.BacklogInterval.String()
	}
	full := make(map[string]string, len(s))
	for key, value := range s {
		full[prefix+key] = value
	}
	return full
}

// units are the spellings of a unit in the field's configuration files, besides Go's.
var units = map[string]time.Duration{
	"milli": time.Millisecond, "millis": time.Millisecond, "sec": time.Second, "second": time.Second, "seconds": time.Second,
	"min": time.Minute, "minute": time.Minute, "minutes": time.Minute, "hour": time.Hour, "hours": time.Hour,
	"d": 24 * time.Hour, "day": 24 * time.Hour, "days": 24 * time.Hour,
}

// parseDuration reads "10 min", "500ms", "1h30m", or a plain number of milliseconds.
func parseDuration(text string) (time.Duration, error) {
	number := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyz ")
	unit, known := units[strings.TrimSpace(text[len(number):])]
	if text == number {
		unit, known = time.Millisecond, true
	}
	if !known {
		return time.ParseDuration(strings.ReplaceAll(text, " ", ""))
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no duration", text)
	}
	if n > int64(math.MaxInt64/unit) || n < -int64(math.MaxInt64/unit) {
		return 0, fmt.Errorf("%q is too long", text)
	}
	return time.Duration(n) * unit, nil
}

// sizes are units of memory, in bytes.
var sizes = map[string]int{"": 1, "b": 1, "bytes": 1, "k": 1 << 10, "kb": 1 << 10, "kib": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "mib": 1 << 20}

// parseSize reads "20 kb", "1m" or a plain number of bytes.
func parseSize(text string) (int, error) {
	lower := strings.ToLower(text)
	number := strings.TrimRight(lower, "abcdefghijklmnopqrstuvwxyz ")
	unit, known := sizes[strings.TrimSpace(lower[len(number):])]
	n, err := strconv.Atoi(number)
	if err != nil || !known || n > math.MaxInt32 || n < 0 {
		return 0, fmt.Errorf("%q is no size in bytes, kb or mb", text)
	}
	return n * unit, nil
}
