package joboption

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weirflow/weir/jobmanager/checkpointing"
	"github.com/weirflow/weir/jobmanager/failover"
	"github.com/weirflow/weir/rpc"
)

// ErrBad is wrapped by every fault that [Parse] finds.
var ErrBad = errors.New("bad job option")

// Settings are the options of a job, decoded.
type Settings struct {
	Checkpointing  checkpointing.Options
	Restart        failover.Options
	Task           rpc.TaskOptions
	Recovery       Recovery
	Parallelism    int // of operators that name none
	MaxParallelism int // of operators that name none; 0: derived
	Chaining       bool
	SlotTimeout    time.Duration
}

// Keys returns the table of all options, sorted by name.
func Keys() []Key {
	all := slices.Concat(own, delegated)
	slices.SortFunc(all, func(a, b Key) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// defaults are the settings of a job without options.
func defaults() Settings {
	return Settings{
		Task: rpc.TaskOptions{
			BufferTimeout: 100 * time.Millisecond, ExclusiveBuffers: 2, FloatingBuffers: 8,
			BuffersPerOutput: 10, OverdraftBuffers: 5, StateBackend: "heap",
			ChannelStateMemory: 64 << 20,
			Debloat: rpc.DebloatOptions{
				Period: 200 * time.Millisecond, Target: time.Second, Samples: 20, Threshold: 25,
			},
		},
		Parallelism: 1, Chaining: true, SlotTimeout: 5 * time.Minute,
	}
}

// Parse decodes options. All faults are reported at once, sorted by key.
func Parse(options map[string]string) (Settings, error) {
	s := defaults()
	var faults []error
	others := make(map[string]string) // decoded by the packages they belong to
	for _, name := range slices.Sorted(maps.Keys(options)) {
		switch key, ok := find(name); {
		case !ok && !delegates(name, options[name]):
			faults = append(faults, unknown(name))
		case !ok || key.set == nil:
			others[name] = options[name]
		default:
			if err := key.set(&s, options[name]); err != nil {
				faults = append(faults, fmt.Errorf("%w %s: %w", ErrBad, name, err))
			}
		}
	}
	var err error
	if s.Checkpointing, err = checkpointing.ParseOptions(others); err != nil {
		faults = append(faults, fmt.Errorf("%w: %w", ErrBad, err))
	}
	checkpointed := s.Checkpointing.Interval > 0
	if s.Restart, err = failover.ParseOptions(others, checkpointed); err != nil {
		faults = append(faults, fmt.Errorf("%w: %w", ErrBad, err))
	}
	s.Task.Checkpointing = checkpointed
	s.Task.AtLeastOnce = s.Checkpointing.Mode == checkpointing.AtLeastOnce
	s.Task.CheckpointsAfterTasksFinish = s.Checkpointing.AfterTasksFinish
	s.Task.InlineThreshold = s.Checkpointing.InlineThreshold
	s.Task.Unaligned = s.Checkpointing.Unaligned
	s.Task.ChannelStateSubtasks = s.Checkpointing.SubtasksPerFile
	return s, errors.Join(faults...)
}

// delegates says whether a key that is not in the table is known to the package it
// belongs to, which then says that its value is not supported yet.
func delegates(name, value string) bool {
	alone := map[string]string{name: value}
	if strings.HasPrefix(name, "execution.checkpointing.") {
		_, err := checkpointing.ParseOptions(alone)
		return !errors.Is(err, checkpointing.ErrUnknownKey)
	}
	if strings.HasPrefix(name, "restart-strategy.") {
		_, err := failover.ParseOptions(alone, true)
		return !errors.Is(err, failover.ErrUnknownKey)
	}
	return false
}

// Effective returns every option with the value that holds, for people: what was
// set, else the default.
func Effective(options map[string]string, s Settings) map[string]string {
	all := make(map[string]string)
	for _, k := range Keys() {
		if !strings.HasPrefix(k.Default, "[") {
			all[k.Name] = k.Default
		}
	}
	maps.Copy(all, s.Checkpointing.Settings())
	maps.Copy(all, s.Restart.Settings())
	maps.Copy(all, options)
	return all
}

func find(name string) (Key, bool) {
	for _, table := range [][]Key{own, delegated} {
		for _, k := range table {
			if k.Name == name {
				return k, true
			}
		}
	}
	return Key{}, false
}

func unknown(name string) error {
	best, least := "", 0
	for _, k := range Keys() {
		if d := distance(name, k.Name); best == "" || d < least {
			best, least = k.Name, d
		}
	}
	return fmt.Errorf("%w %q: there is no such key; the nearest is %q", ErrBad, name, best)
}

// distance is the number of edits (insert, delete, replace) from a to b. Names
// from outside are cut, so that the cost is bounded.
func distance(a, b string) int {
	const longest = 200
	a, b = a[:min(len(a), longest)], b[:min(len(b), longest)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
