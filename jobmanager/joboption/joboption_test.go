package joboption

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/jobmanager/checkpointing"
	"github.com/weirflow/weir/jobmanager/failover"
	"github.com/weirflow/weir/rpc"
)

func TestEveryOptionIsDecoded(t *testing.T) {
	t.Parallel()
	s, err := Parse(map[string]string{
		"execution.buffer-timeout.interval":                                     "5 ms",
		"parallelism.default":                                                   "3",
		"pipeline.max-parallelism":                                              "64",
		"pipeline.operator-chaining.enabled":                                    "false",
		"slot.request.timeout":                                                  "1min",
		"state.backend.type":                                                    "heap",
		"taskmanager.network.memory.buffers-per-channel":                        "4",
		"taskmanager.network.memory.floating-buffers-per-gate":                  "16",
		"taskmanager.network.memory.max-buffers-per-channel":                    "20",
		"taskmanager.network.memory.max-overdraft-buffers-per-gate":             "0",
		"execution.checkpointing.interval":                                      "5s",
		"execution.checkpointing.data-inline-threshold":                         "32kb",
		"execution.checkpointing.unaligned.enabled":                             "true",
		"execution.checkpointing.aligned-checkpoint-timeout":                    "1s",
		"execution.checkpointing.unaligned.max-subtasks-per-channel-state-file": "3",
		"execution.checkpointing.unaligned.channel-state-memory":                "1mb",
		"taskmanager.network.memory.buffer-debloat.enabled":                     "true",
		"taskmanager.network.memory.buffer-debloat.period":                      "50ms",
		"taskmanager.network.memory.buffer-debloat.target":                      "2s",
		"taskmanager.network.memory.buffer-debloat.samples":                     "7",
		"taskmanager.network.memory.buffer-debloat.threshold-percentages":       "50",
		"restart-strategy.type":                                                 "fixed-delay",
		"restart-strategy.fixed-delay.attempts":                                 "7",
		"restart-strategy.fixed-delay.delay":                                    "2s",
	})
	if err != nil {
		t.Fatal(err)
	}
	task := s.Task
	if task.BufferTimeout != 5*time.Millisecond || task.ExclusiveBuffers != 4 || task.FloatingBuffers != 16 || task.BuffersPerOutput != 20 ||
		task.OverdraftBuffers != 0 || task.StateBackend != "heap" || !task.Checkpointing || task.InlineThreshold != 32<<10 || !task.CheckpointsAfterTasksFinish {
		t.Errorf("task options %+v", task)
	}
	if !task.Unaligned || task.ChannelStateSubtasks != 3 || task.ChannelStateMemory != 1<<20 || s.Checkpointing.AlignedTimeout != time.Second {
		t.Errorf("options of unaligned checkpoints %+v, %+v", task, s.Checkpointing)
	}
	if want := (rpc.DebloatOptions{Enabled: true, Period: 50 * time.Millisecond, Target: 2 * time.Second, Samples: 7, Threshold: 50}); task.Debloat != want {
		t.Errorf("options of debloating %+v", task.Debloat)
	}
	if s.Parallelism != 3 || s.MaxParallelism != 64 || s.Chaining || s.SlotTimeout != time.Minute || s.Checkpointing.Interval != 5*time.Second {
		t.Errorf("settings %+v", s)
	}
	if s.Restart.Kind != failover.FixedDelay || s.Restart.Attempts != 7 || s.Restart.Delay != 2*time.Second {
		t.Errorf("restart options %+v", s.Restart)
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	plain, err := Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	if plain.Restart.Kind != failover.None || plain.Task.Checkpointing || plain.SlotTimeout != 5*time.Minute || plain.Parallelism != 1 {
		t.Errorf("without options: %+v", plain)
	}
	checkpointed, err := Parse(map[string]string{"execution.checkpointing.interval": "1s"})
	if err != nil {
		t.Fatal(err)
	}
	if r := checkpointed.Restart; r.Kind != failover.FixedDelay || r.Attempts != failover.Unlimited || r.Delay != time.Second {
		t.Errorf("with checkpoints: %+v", r)
	}
}

func TestAllFaultsAreNamed(t *testing.T) {
	t.Parallel()
	_, err := Parse(map[string]string{
		"parallelism.defualt":                "3",
		"slot.request.timeout":               "soon",
		"pipeline.operator-chaining.enabled": "perhaps",
		"state.backend.type":                 "rocksdb",
		"execution.checkpointing.intervall":  "1s",
		"execution.checkpointing.timeout":    "x",
		"restart-strategy.type":              "hope",
		"pipeline.max-parallelism":           "100000",

		"execution.checkpointing.unaligned.channel-state-memory": "1kb",
		"taskmanager.network.memory.buffer-debloat.period":       "0",
		"taskmanager.network.memory.floating-buffers-per-gate":   "0",
	})
	if !errors.Is(err, ErrBad) {
		t.Fatal(err)
	}
	for _, part := range []string{
		`"parallelism.defualt"`, `nearest is "parallelism.default"`, "slot.request.timeout", "operator-chaining.enabled", `"rocksdb"`,
		`nearest is "execution.checkpointing.interval"`, "execution.checkpointing.timeout", "restart-strategy.type", "between 1 and 32768",
		"channel-state-memory", "buffer-debloat.period", "floating-buffers-per-gate",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in: %v", part, err)
		}
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"5s": 5 * time.Second, "250 ms": 250 * time.Millisecond, "10min": 10 * time.Minute, "1h30m": 90 * time.Minute, "2d": 48 * time.Hour, "7": 7 * time.Millisecond, "0": 0,
	} {
		if d, err := ParseDuration(text); err != nil || d != want {
			t.Errorf("%q is %s, %v; want %s", text, d, err, want)
		}
	}
	for text, want := range map[string]int64{"32kb": 32 << 10, "1 MB": 1 << 20, "4096": 4096, "2gib": 2 << 30, "7b": 7, "3 bytes": 3, "1k": 1024} {
		if n, err := ParseSize(text); err != nil || n != want {
			t.Errorf("%q is %d, %v; want %d", text, n, err, want)
		}
	}
	for _, bad := range []string{"", "s", "5 parsecs", "-", "1e9999s", "99999999999999999999d"} {
		if _, err := ParseDuration(bad); err == nil {
			t.Errorf("duration %q is accepted", bad)
		}
	}
	for _, bad := range []string{"", "kb", "-1", "1.5mb", "9999999999999gb", "1tb"} {
		if _, err := ParseSize(bad); err == nil {
			t.Errorf("size %q is accepted", bad)
		}
	}
}

// TestTableIsComplete compares the table with the keys that the packages print.
func TestTableIsComplete(t *testing.T) {
	t.Parallel()
	o, err := checkpointing.ParseOptions(map[string]string{"execution.checkpointing.interval": "1s", "execution.checkpointing.interval-during-backlog": "2s"})
	if err != nil {
		t.Fatal(err)
	}
	keys := slices.Collect(maps.Keys(o.Settings()))
	for _, kind := range []failover.Kind{failover.None, failover.FixedDelay, failover.FailureRate} {
		r := failover.Defaults(true)
		r.Kind = kind
		keys = slices.AppendSeq(keys, maps.Keys(r.Settings()))
	}
	for _, k := range keys {
		if _, ok := find(k); !ok {
			t.Errorf("%q is not in the table", k)
		}
	}
	for _, k := range Keys() {
		if strings.HasPrefix(k.Default, "[") {
			continue
		}
		if _, err := Parse(map[string]string{k.Name: k.Default, "execution.checkpointing.interval": "1s"}); err != nil {
			t.Errorf("the default of %q is refused: %v", k.Name, err)
		}
	}
}

func TestEffectiveShowsWhatHolds(t *testing.T) {
	t.Parallel()
	options := map[string]string{"execution.checkpointing.interval": "1s", "parallelism.default": "2"}
	s, err := Parse(options)
	if err != nil {
		t.Fatal(err)
	}
	all := Effective(options, s)
	for k, want := range map[string]string{"parallelism.default": "2", "state.backend.type": "heap", "restart-strategy.type": "fixed-delay", "slot.request.timeout": "5min"} {
		if all[k] != want {
			t.Errorf("%s is %q, want %q", k, all[k], want)
		}
	}
}

// TestDocumentation holds docs/config.md to the table.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range Keys() {
		if row := Row(k); !strings.Contains(string(text), row+"\n") {
			t.Errorf("docs/config.md lacks the line\n%s", row)
		}
	}
	if n, want := strings.Count(string(text), "\n| `"), len(Keys()); n != want {
		t.Errorf("docs/config.md has %d options, the table has %d", n, want)
	}
}

func TestContradictionsAreRefused(t *testing.T) {
	t.Parallel()
	_, err := Parse(map[string]string{
		"execution.checkpointing.unaligned.enabled": "true", "execution.checkpointing.mode": "AT_LEAST_ONCE",
	})
	if !errors.Is(err, ErrBad) || !strings.Contains(err.Error(), "execution.checkpointing.unaligned.enabled: contradicts execution.checkpointing.mode") {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	for _, k := range Keys() {
		f.Add(k.Name, "5s")
		f.Add(k.Name, "-1")
	}
	f.Fuzz(func(t *testing.T, key, value string) {
		if s, err := Parse(map[string]string{key: value}); err == nil {
			if err := s.Checkpointing.Validate(); err != nil {
				t.Error(fmt.Errorf("%s=%s: %w", key, value, err))
			}
		}
	})
}
