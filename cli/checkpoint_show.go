package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/rpc"
)

// showCheckpoint shows one checkpoint with its operators and subtasks.
func (a *app) showCheckpoint(l rpc.CheckpointList, job string, id weir.CheckpointID) error {
	c, err := findCheckpoint(l, job, id)
	if err != nil {
		return err
	}
	if a.json() {
		return printJSON(a.streams.Out, checkpointJSONOf(*c))
	}
	printCheckpoint(a.streams.Out, c)
	return nil
}

func printCheckpoint(w io.Writer, c *rpc.CheckpointInfo) {
	fmt.Fprintf(w, "%s %d  %s  triggered %s  %s  %d of %d tasks  %s, %s of it new\n", c.Type(), c.ID, c.Status, when(c.Triggered),
		durationText(c.Duration), c.Acknowledged, c.Tasks, bytesText(c.Bytes), bytesText(c.NewBytes))
	if c.Path != "" {
		fmt.Fprintln(w, "path  ", c.Path)
	}
	if c.Status == rpc.CheckpointFailed {
		fmt.Fprintf(w, "failed: %s: %s\n", c.Reason, c.Message)
	}
	if len(c.Steps) > 0 {
		fmt.Fprintln(w, "steps ", stepsText(c.Steps))
	}
	if len(c.Vertices) == 0 && len(c.Subtasks) == 0 {
		fmt.Fprintln(w, "nothing is known of its subtasks: another JobManager took it")
		return
	}
	late := make(map[weir.AttemptID]rpc.SubtaskCheckpoint, len(c.Late))
	for _, t := range c.Late {
		late[t.Attempt] = t
	}
	var t table
	t.row("", right("ACKNOWLEDGED"), right("START DELAY"), right("ALIGNMENT"), right("SYNC"), right("ASYNC"), right("SIZE"),
		right("ALIGNED"), right("IN FLIGHT"), right("QUEUED"), "LAST BARRIER")
	vertices, shown := c.Vertices, ""
	for i := range c.Subtasks {
		s := c.Subtasks[i]
		if len(c.Vertices) == 0 && s.Vertex != shown { // they are summed up at the end
			shown = s.Vertex
			t.row(shown)
		}
		for len(vertices) > 0 && vertices[0].Vertex <= s.Attempt.Vertex { // each before its subtasks
			vertexRow(&t, vertices[0])
			vertices = vertices[1:]
		}
		note := ""
		if was, ok := late[s.Attempt]; ok && s.Acknowledged == 0 {
			s, note = was, "late"
		}
		subtaskRow(&t, s, note)
	}
	for _, v := range vertices {
		vertexRow(&t, v)
	}
	t.print(w)
}

func vertexRow(t *table, v rpc.VertexCheckpoint) {
	last := "-"
	if v.Slowest >= 0 {
		last = durationText(v.LastAck)
	}
	t.row(fmt.Sprintf("%s  %d of %d", v.Name, v.Acknowledged, v.Tasks), right(last), right(durationText(v.StartDelay)), right(durationText(v.Alignment)),
		right(durationText(v.Sync)), right(durationText(v.Async)), right(bytesText(v.StateBytes)), right(bytesText(v.AlignedBytes)),
		right(bytesText(v.PersistedBytes)), "", "")
}

func subtaskRow(t *table, s rpc.SubtaskCheckpoint, note string) {
	name := fmt.Sprintf("  [%d]", s.Attempt.Subtask)
	if s.Acknowledged == 0 {
		t.row(name, right("-"), "", "", "", "", "", "", "", "", "")
		return
	}
	m := s.Metrics
	last := "-"
	if b := m.LastBarrier; b.Came {
		last = fmt.Sprintf("input %d channel %d, behind %s", b.Input, b.Channel, bytesText(b.Queued))
	}
	if note != "" {
		last += "  " + note
	}
	t.row(name, right(durationText(s.Acknowledged)), right(durationText(m.StartDelay)), right(durationText(m.AlignmentDuration)),
		right(durationText(m.SyncDuration)), right(durationText(m.AsyncDuration)), right(bytesText(m.StateBytes)), right(bytesText(m.AlignedBytes)),
		right(inFlightText(m.Unaligned, m.PersistedBytes)), right(bytesText(m.QueuedBytes)), last)
}

func stepsText(steps []rpc.StepTime) string {
	var parts []string
	for _, s := range steps {
		sign, at := "+", s.At
		if at < 0 {
			sign, at = "-", -at
		}
		parts = append(parts, fmt.Sprintf("%s %s%s", s.Step, sign, durationText(at)))
	}
	return strings.Join(parts, ", ")
}

// summaryJSON is counts and quantiles for scripts: durations in milliseconds.
type summaryJSON struct {
	Completed       int64                    `json:"completed"`
	Failed          int64                    `json:"failed"`
	Pending         int64                    `json:"in_progress"`
	Total           int64                    `json:"total"`
	Restores        int64                    `json:"restores"`
	Restored        int64                    `json:"restored"` // checkpoint of the last restore; 0: none
	LatestCompleted *checkpointJSON          `json:"latest_completed"`
	LatestSavepoint *checkpointJSON          `json:"latest_savepoint"`
	LatestFailed    *checkpointJSON          `json:"latest_failed"`
	Quantiles       map[string]quantilesJSON `json:"quantiles"`
}

type quantilesJSON struct {
	Count   int     `json:"count"`
	Min     float64 `json:"min"`
	Average float64 `json:"average"`
	P50     float64 `json:"p50"`
	P90     float64 `json:"p90"`
	P99     float64 `json:"p99"`
	P999    float64 `json:"p999"`
	Max     float64 `json:"max"`
}

// figure is a row of a summary.
type figure struct {
	name, key string
	bytes     bool
	rpc.Quantiles
}

func figuresOf(s rpc.CheckpointSummary) []figure {
	return []figure{
		{"duration", "duration_ms", false, s.Duration}, {"size", "bytes", true, s.Bytes}, {"new", "new_bytes", true, s.NewBytes},
		{"in flight", "persisted_bytes", true, s.PersistedBytes}, {"aligned", "aligned_bytes", true, s.AlignedBytes},
		{"start delay", "start_delay_ms", false, s.StartDelay}, {"alignment", "alignment_ms", false, s.Alignment},
		{"sync", "sync_ms", false, s.Sync}, {"async", "async_ms", false, s.Async},
	}
}

// values are what a figure's row shows, in order.
func (f figure) values() []float64 {
	return []float64{f.Min, f.Average, f.P50, f.P90, f.P99, f.P999, f.Max}
}

func (a *app) showSummary(l rpc.CheckpointList) error {
	if !a.json() {
		printSummary(a.streams.Out, l)
		return nil
	}
	out := summaryJSON{
		Completed: l.Completed, Failed: l.Failed, Pending: l.Pending, Total: l.Completed + l.Failed + l.Pending,
		Restores: l.Restores, Restored: int64(l.Restored), Quantiles: map[string]quantilesJSON{},
	}
	latest := func(c *rpc.CheckpointInfo) *checkpointJSON {
		if c == nil {
			return nil
		}
		j := checkpointJSONOf(*c)
		return &j
	}
	out.LatestCompleted, out.LatestSavepoint, out.LatestFailed = latest(l.Latest.Completed), latest(l.Latest.Savepoint), latest(l.Latest.Failed)
	for _, f := range figuresOf(l.Summary) {
		v := f.values()
		if !f.bytes {
			for i := range v {
				v[i] *= 1000
			}
		}
		out.Quantiles[f.key] = quantilesJSON{Count: f.Count, Min: v[0], Average: v[1], P50: v[2], P90: v[3], P99: v[4], P999: v[5], Max: v[6]}
	}
	return printJSON(a.streams.Out, out)
}

func printSummary(w io.Writer, l rpc.CheckpointList) {
	fmt.Fprintf(w, "completed %d  failed %d  in progress %d  total %d  restores %d\n", l.Completed, l.Failed, l.Pending,
		l.Completed+l.Failed+l.Pending, l.Restores)
	for _, x := range []struct {
		name string
		c    *rpc.CheckpointInfo
	}{{"latest completed", l.Latest.Completed}, {"latest savepoint", l.Latest.Savepoint}, {"latest failed", l.Latest.Failed}} {
		if x.c != nil {
			fmt.Fprintf(w, "%s  %d at %s, %s, %s\n", x.name, x.c.ID, when(x.c.Triggered), durationText(x.c.Duration), bytesText(x.c.Bytes))
		}
	}
	if l.Summary.Duration.Count == 0 {
		fmt.Fprintln(w, "no completed checkpoint is remembered")
		return
	}
	fmt.Fprintf(w, "\nover the %d completed ones that are remembered; of subtasks the longest of each\n", l.Summary.Duration.Count)
	var t table
	t.row("", right("MIN"), right("AVERAGE"), right("P50"), right("P90"), right("P99"), right("P99.9"), right("MAX"))
	for _, f := range figuresOf(l.Summary) {
		cells := []string{f.name}
		for _, v := range f.values() {
			text := durationText(time.Duration(v * float64(time.Second)))
			if f.bytes {
				text = bytesText(int64(v))
			}
			cells = append(cells, right(text))
		}
		t.rows = append(t.rows, slices.Clip(cells))
	}
	t.print(w)
}
