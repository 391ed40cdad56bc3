package main

import (
	"strings"
	"time"

	"github.com/weirflow/weir/examples/checkpointdemo"
	"github.com/weirflow/weir/rpc"
)

// sample is what one checkpoint showed.
type sample struct {
	info      rpc.CheckpointInfo
	duration  time.Duration
	rest      time.Duration // of the records that were being processed when barriers came
	begun     int           // records begun between a barrier's arrival and the snapshot
	lastSync  time.Duration // trigger to the end of the last synchronous part
	async     time.Duration // from there to the last acknowledgement
	unaligned int           // subtasks that did not wait for all barriers
	inFlight  checkpointdemo.InFlight
	reached   []time.Duration // trigger to synchronous part, by subtask
	sync      []time.Duration // synchronous part, by subtask
}

// sampleOf evaluates a checkpoint. Times are the JobManager's, less what subtasks say they
// spent, so that they hold both messages to and from each.
func sampleOf(info rpc.CheckpointInfo, traces [managers][]span) sample {
	s := sample{info: info, duration: info.Duration}
	acknowledged := time.Duration(0)
	arrival := info.Duration // of the first barrier: when the first source sent it
	for _, t := range info.Subtasks {
		at := t.Acknowledged - t.Metrics.AsyncDuration - t.Metrics.SyncDuration
		s.reached = append(s.reached, at)
		s.sync = append(s.sync, t.Metrics.SyncDuration)
		s.lastSync = max(s.lastSync, at+t.Metrics.SyncDuration)
		acknowledged = max(acknowledged, t.Acknowledged)
		if t.Metrics.Unaligned {
			s.unaligned++
		}
		if isSource(t) {
			arrival = min(arrival, at)
		}
	}
	s.async = acknowledged - s.lastSync
	for i, t := range info.Subtasks {
		if isSource(t) {
			continue
		}
		snapshot := info.Triggered.Add(s.reached[i]).UnixNano()
		rest, begun := waited(traces[t.Attempt.Subtask], snapshot, s.reached[i]-arrival)
		s.rest = max(s.rest, rest)
		s.begun += begun
	}
	return s
}

func isSource(t rpc.SubtaskCheckpoint) bool {
	return strings.HasPrefix(t.Vertex, checkpointdemo.SourceOperator)
}
