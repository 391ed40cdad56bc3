package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"time"

	"github.com/weirflow/weir/examples/checkpointdemo"
	"github.com/weirflow/weir/flow"
)

// jobName is the demo's: it is the demo's job.
const jobName = checkpointdemo.Name

// traceDir is the variable that tells TaskManagers where counters note their records.
const traceDir = "WEIR_BENCH_TRACES"

// spanBytes is the size of a span in a file.
const spanBytes = 16

// traced is the demo's job, whose counters also note when they began and ended each
// record that takes time.
func traced() flow.Job { return checkpointdemo.Paced(jobName, note) }

func note(r *flow.Runtime) func(time.Duration) {
	return noteTo(os.Getenv(traceDir), r.Job(), r.Subtask())
}

func noteTo(dir, job string, subtask int) func(time.Duration) {
	f, err := os.OpenFile(traceFile(dir, job, subtask), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must(err)
	return func(d time.Duration) {
		var b [spanBytes]byte
		binary.LittleEndian.PutUint64(b[:], uint64(time.Now().UnixNano()))
		<-time.After(d)
		binary.LittleEndian.PutUint64(b[8:], uint64(time.Now().UnixNano()))
		_, err := f.Write(b[:])
		must(err)
	}
}

func traceFile(dir, job string, subtask int) string {
	return filepath.Join(dir, fmt.Sprintf("%s-%d", job, subtask))
}

// span is when a counter processed a record, in nanoseconds since the Unix epoch.
type span struct{ begun, ended int64 }

// readTrace returns the spans of a counter, in order; none if its records take no time.
func readTrace(dir, job string, subtask int) ([]span, error) {
	b, err := os.ReadFile(traceFile(dir, job, subtask))
	if err != nil {
		return nil, err
	}
	spans := make([]span, len(b)/spanBytes)
	for i := range spans {
		at := b[i*spanBytes:]
		spans[i] = span{int64(binary.LittleEndian.Uint64(at)), int64(binary.LittleEndian.Uint64(at[8:]))}
	}
	return spans, nil
}

// waited says what a counter did in the time from a barrier's arrival to its snapshot:
// how long the record took from then on that was being processed when the barrier came,
// and how many others were begun, which should have waited. The snapshot follows a record;
// at is when it was taken, from another clock and rounded.
func waited(spans []span, at int64, waiting time.Duration) (rest time.Duration, begun int) {
	k := sort.Search(len(spans), func(i int) bool { return spans[i].ended > at })
	if k == len(spans) || k > 0 && at-spans[k-1].ended < spans[k].ended-at {
		k--
	}
	if k < 0 || waiting <= 0 {
		return 0, 0
	}
	arrival := spans[k].ended - waiting.Nanoseconds()
	for ; k >= 0 && spans[k].begun > arrival; k-- {
		begun++
	}
	if k >= 0 {
		rest = max(0, time.Duration(spans[k].ended-arrival))
	}
	return rest, begun
}
