package cli

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// Bounds within which the median of measured ÷ predicted duration must lie under
// back pressure for the queue to explain the duration.
const (
	ratioLow  = 0.75
	ratioHigh = 1.25
)

// demoJSON is a checkpoint of the demo for scripts.
type demoJSON struct {
	Mode           string  `json:"mode"`
	Checkpoint     int64   `json:"checkpoint"`
	DurationMS     float64 `json:"duration_ms"`
	Bytes          int64   `json:"bytes"`
	PersistedBytes int64   `json:"persisted_bytes"` // of bytes, in-flight data
	Unaligned      int     `json:"unaligned"`       // subtasks whose snapshot did not wait for all barriers
	QueuedBytes    int64   `json:"queued_bytes"`
	PredictedMS    float64 `json:"predicted_ms"`
}

func (r demoRow) json() demoJSON {
	return demoJSON{
		Mode: r.mode.name, Checkpoint: int64(r.info.ID), DurationMS: millisOf(r.info.Duration), Bytes: r.info.Bytes,
		PersistedBytes: r.info.PersistedBytes, Unaligned: r.unaligned(),
		QueuedBytes: r.guess.queued, PredictedMS: millisOf(r.guess.wait),
	}
}

// unaligned is how many subtasks did not wait for all barriers.
func (r demoRow) unaligned() (n int) {
	for _, s := range r.info.Subtasks {
		if s.Metrics.Unaligned {
			n++
		}
	}
	return n
}

// overtaken says what barriers have overtaken, if they have.
func (r demoRow) overtaken() string {
	if r.unaligned() == 0 {
		return ""
	}
	return fmt.Sprintf(", %s of it in flight", bytesText(r.info.PersistedBytes))
}

// ratio is measured ÷ predicted duration, or 0 if nothing was predicted or the barriers
// did not wait for it.
func (r demoRow) ratio() float64 {
	if r.guess.wait <= 0 || !r.mode.waits { // without back pressure hardly anything is queued
		return 0
	}
	return float64(r.info.Duration) / float64(r.guess.wait)
}

// cells are the row's line in the table.
func (r demoRow) cells() []string {
	ratio, unaligned, flink, size := "-", "-", "-", "-"
	if v := r.ratio(); v > 0 {
		ratio = fmt.Sprintf("%.2f", v)
	}
	if n := r.unaligned(); n > 0 {
		unaligned = fmt.Sprintf("%d/%d", n, len(r.info.Subtasks))
	}
	if r.n < len(r.mode.flink) {
		flink, size = fmt.Sprintf("%d ms", r.mode.flink[r.n].Milliseconds()), r.mode.flinkSizes[r.n]
	}
	return []string{
		r.mode.name, right(fmt.Sprint(int64(r.info.ID))), right(durationText(r.info.Duration)), right(bytesText(r.info.Bytes)),
		right(bytesText(r.info.PersistedBytes)), right(unaligned), right(bytesText(r.guess.queued)), right(durationText(r.guess.wait)),
		right(ratio), right(flink), right(size),
	}
}

// printDemo prints the table and what it says. The rows of a mode follow each other.
func printDemo(w io.Writer, rows []demoRow) {
	var t table
	t.row("MODE", right("CHECKPOINT"), right("DURATION"), right("SIZE"), right("IN FLIGHT"), right("UNALIGNED"), right("QUEUED AHEAD"),
		right("PREDICTED"), right("RATIO"), right("FLINK 2.3.0"), right("SIZE"))
	groups := byMode(rows)
	for i, g := range groups {
		if i > 0 {
			t.row()
		}
		for _, r := range g {
			t.row(r.cells()...)
		}
	}
	fmt.Fprintln(w)
	t.print(w)
	fmt.Fprintln(w, "\nin flight = data that barriers overtook, part of the size; unaligned = subtasks that did not wait for all barriers")
	fmt.Fprintln(w, "predicted = bytes queued ahead of the barriers ÷ rate at which the slowest subtask drained them before the trigger")
	fmt.Fprintln(w, "Flink's figures are from a laptop, in its own checkpoint experiment; - where it published none")
	for _, g := range groups {
		fmt.Fprintln(w, verdict(g, groups[0]))
	}
}

// byMode splits rows where the mode changes.
func byMode(rows []demoRow) (groups [][]demoRow) {
	for i, r := range rows {
		if i == 0 || r.mode != rows[i-1].mode {
			groups = append(groups, nil)
		}
		last := &groups[len(groups)-1]
		*last = append(*last, r)
	}
	return groups
}

// verdict says what the rows of a mode show. first are those of the first mode that
// ran: if that is the one without back pressure, durations are compared with its.
func verdict(rows, first []demoRow) string {
	m := rows[0].mode
	middle := median(durations(rows))
	switch {
	case m.waits:
		return m.name + ": " + explained(rows)
	case m.options[keyAlignedTimeout] != "":
		switched, over := 0, []time.Duration(nil)
		for _, r := range rows {
			if r.unaligned() > 0 {
				switched++
				over = append(over, r.info.Duration-alignedTimeout)
			}
		}
		s := fmt.Sprintf("%s: %d of %d checkpoints switched to unaligned", m.name, switched, len(rows))
		if switched > 0 {
			s += fmt.Sprintf(" and took %s more than the timeout of %s in the median", durationText(max(0, median(over))), alignedTimeout)
		}
		return s
	}
	s := fmt.Sprintf("%s: %s in the median", m.name, durationText(middle))
	if baseline := median(durations(first)); m != first[0].mode && first[0].mode.pace == unhindered && baseline > 0 {
		s += fmt.Sprintf(", %.1f × that of %s", float64(middle)/float64(baseline), first[0].mode.name)
	}
	return s
}

// explained says whether the queue explains how long the checkpoints took.
func explained(rows []demoRow) string {
	var ratios []float64
	for _, r := range rows {
		if v := r.ratio(); v > 0 {
			ratios = append(ratios, v)
		}
	}
	if len(ratios) == 0 {
		return "nothing was queued, so nothing was predicted"
	}
	middle, word := median(ratios), "explains"
	if middle < ratioLow || middle > ratioHigh {
		word = "does not explain"
	}
	return fmt.Sprintf("the queue %s the duration: measured ÷ predicted is %.2f in the median of %d (%.2f to %.2f)", word, middle, len(ratios), ratioLow, ratioHigh)
}

func durations(rows []demoRow) (out []time.Duration) {
	for _, r := range rows {
		out = append(out, r.info.Duration)
	}
	return out
}

// median is the middle of values, which are not none.
func median[T float64 | time.Duration](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
