package checkpointing

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

func TestOptionsAreParsed(t *testing.T) {
	t.Parallel()
	o, err := ParseOptions(map[string]string{
		"execution.checkpointing.interval":                                      "5 s",
		"execution.checkpointing.interval-during-backlog":                       "1 min",
		"execution.checkpointing.timeout":                                       "1h30m",
		"execution.checkpointing.min-pause":                                     "250",
		"execution.checkpointing.mode":                                          "exactly_once",
		"execution.checkpointing.max-concurrent-checkpoints":                    "1",
		"execution.checkpointing.num-retained":                                  "3",
		"execution.checkpointing.tolerable-failed-checkpoints":                  "3",
		"execution.checkpointing.checkpoints-after-tasks-finish.enabled":        "false",
		"execution.checkpointing.data-inline-threshold":                         "64 kb",
		"execution.checkpointing.unaligned.enabled":                             "true",
		"execution.checkpointing.aligned-checkpoint-timeout":                    "30 s",
		"execution.checkpointing.unaligned.max-subtasks-per-channel-state-file": "7",
		"execution.checkpointing.unaligned.interruptible-timers.enabled":        "false",
		"execution.checkpointing.unaligned.forced":                              "true",
		"execution.checkpointing.externalized-checkpoint-retention":             "delete_on_cancellation",
		"restart-strategy.type":                                                 "somebody else's",
	})
	want := Options{
		Interval: 5 * time.Second, BacklogInterval: time.Minute, BacklogIntervalSet: true, Timeout: 90 * time.Minute,
		MinPause: 250 * time.Millisecond, MaxConcurrent: 1, Retained: 3, TolerableFailures: 3, Retention: DeleteOnCancellation, InlineThreshold: 64 << 10,
		Unaligned: true, AlignedTimeout: 30 * time.Second, SubtasksPerFile: 7,
	}
	if err != nil || o != want {
		t.Fatalf("got  %+v, %v\nwant %+v", o, err, want)
	}
	again, err := ParseOptions(o.Settings())
	if err != nil || again != o {
		t.Fatalf("settings %v give %+v, %v", o.Settings(), again, err)
	}
	none, err := ParseOptions(nil)
	if err != nil || none != Defaults() {
		t.Fatalf("no settings give %+v, %v", none, err)
	}
}

func TestBadOptionsAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ key, value, want string }{
		{"interval", "often", "invalid duration"},
		{"interval", "0", "0 is no interval"},
		{"interval", "1ms", "not between 10ms and 365 days"},
		{"interval", "-5s", "not between"},
		{"interval", "999999999999 d", "too long"},
		{"interval", "x min", "invalid duration"},
		{"interval", "1.5 min", "no duration"},
		{"intervall", "5s", "unknown key"},
		{"interval.enabled", "true", "unknown key"},
		{"interval-during-backlog", "5s", "needs execution.checkpointing.interval"},
		{"timeout", "0", "not between"},
		{"min-pause", "-1s", "negative"},
		{"mode", "AT_MOST_ONCE", "is not one of EXACTLY_ONCE, AT_LEAST_ONCE"},
		{"max-concurrent-checkpoints", "101", "above 100"},
		{"max-concurrent-checkpoints", "0", "below 1"},
		{"max-concurrent-checkpoints", "one", "invalid syntax"},
		{"num-retained", "0", "not between 1 and 1000"},
		{"num-retained", "1001", "not between 1 and 1000"},
		{"tolerable-failed-checkpoints", "few", "invalid syntax"},
		{"tolerable-failed-checkpoints", "-1", "negative"},
		{"checkpoints-after-tasks-finish", "maybe", "invalid syntax"},
		{"data-inline-threshold", "2 mb", "not between"},
		{"data-inline-threshold", "1 gb", "no size"},
		{"unaligned.enabled", "perhaps", "invalid syntax"},
		{"unaligned.forced", "perhaps", "invalid syntax"},
		{"unaligned.during-recovery.enabled", "true", "not supported yet"},
		{"aligned-checkpoint-timeout", "-1s", "not between 0 and 365 days"},
		{"unaligned.max-subtasks-per-channel-state-file", "0", "not between 1 and 1000"},
		{"incremental", "true", "not supported yet"},
		{"dir", "/tmp", "not supported yet"},
		{"externalized-checkpoint-retention", "KEEP", "is not one of RETAIN_ON_CANCELLATION, DELETE_ON_CANCELLATION, NO_EXTERNALIZED_CHECKPOINTS"},
	} {
		_, err := ParseOptions(map[string]string{prefix + c.key: c.value})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), prefix+c.key) {
			t.Errorf("%s=%s: %v, want %q", c.key, c.value, err, c.want)
		}
	}
}

func TestAllFaultsAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := ParseOptions(map[string]string{prefix + "a": "1", prefix + "mode": "x", prefix + "incremental": "true"})
	if !errors.Is(err, ErrUnknownKey) || !errors.Is(err, ErrUnsupported) || strings.Count(err.Error(), prefix) != 3 {
		t.Errorf("%v", err)
	}
	_, err = ParseOptions(map[string]string{prefix + "interval": "10s", prefix + "interval-during-backlog": "1s", prefix + "num-retained": "0"})
	if err == nil || strings.Count(err.Error(), prefix) != 2 {
		t.Errorf("%v", err)
	}
}

func TestContradictionsNameBothKeys(t *testing.T) {
	t.Parallel()
	for key, value := range map[string]string{"mode": "AT_LEAST_ONCE", "max-concurrent-checkpoints": "2"} {
		_, err := ParseOptions(map[string]string{prefix + "unaligned.enabled": "true", prefix + key: value})
		if err == nil || !strings.Contains(err.Error(), prefix+"unaligned.enabled") || !strings.Contains(err.Error(), prefix+key+" = "+value) {
			t.Errorf("%s=%s: %v", key, value, err)
		}
	}
}

// Behaviour §3: who gets which alignment.
func TestAlignmentOfATrigger(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		o       Options
		kind    weir.SnapshotKind
		want    weir.Alignment
		timeout time.Duration
	}{
		{"not exactly once", Options{Mode: AtLeastOnce}, weir.Checkpoint, weir.AtLeastOnce, 0},
		{"not exactly once, savepoint", Options{Mode: AtLeastOnce}, weir.Savepoint, weir.AtLeastOnce, 0},
		{"aligned", Options{AlignedTimeout: time.Second}, weir.Checkpoint, weir.Aligned, 0},
		{"unaligned", Options{Unaligned: true}, weir.Checkpoint, weir.Unaligned, 0},
		{"unaligned, full", Options{Unaligned: true}, weir.FullCheckpoint, weir.Unaligned, 0},
		{"timeoutable", Options{Unaligned: true, AlignedTimeout: time.Second}, weir.Checkpoint, weir.Aligned, time.Second},
		{"savepoint", Options{Unaligned: true}, weir.Savepoint, weir.Aligned, 0},
		{"stop", Options{Unaligned: true, AlignedTimeout: time.Second}, weir.SuspendSavepoint, weir.Aligned, 0},
	} {
		if got, timeout := c.o.alignmentOf(c.kind); got != c.want || timeout != c.timeout {
			t.Errorf("%s: %s after %s, want %s after %s", c.name, got, timeout, c.want, c.timeout)
		}
	}
}

// FuzzParseOptions looks for values that panic, or that give options whose printed
// form means something else.
func FuzzParseOptions(f *testing.F) {
	f.Add("interval", "10 min")
	f.Add("data-inline-threshold", "20kb")
	f.Add("tolerable-failed-checkpoints", "unlimited")
	f.Fuzz(func(t *testing.T, key, value string) {
		o, err := ParseOptions(map[string]string{prefix + key: value})
		if err != nil {
			return
		}
		again, err := ParseOptions(o.Settings())
		if err != nil || again != o {
			t.Fatalf("%q=%q: %+v prints as %v, which gives %+v, %v", key, value, o, o.Settings(), again, err)
		}
	})
}
