package cli

import (
	"fmt"
	"slices"
)

// Bounds within which the median of measured ÷ predicted duration must lie under
// back pressure for the queue to explain the duration.
const (
	ratioLow  = 0.75
	ratioHigh = 1.25
)

// demoJSON is a checkpoint of the demo for scripts.
type demoJSON struct {
	Mode        string  `json:"mode"`
	Checkpoint  int64   `json:"checkpoint"`
	DurationMS  float64 `json:"duration_ms"`
	Bytes       int64   `json:"bytes"`
	QueuedBytes int64   `json:"queued_bytes"`
	PredictedMS float64 `json:"predicted_ms"`
}

func (r demoRow) json() demoJSON {
	return demoJSON{
		Mode: r.mode.name, Checkpoint: int64(r.info.ID), DurationMS: millisOf(r.info.Duration), Bytes: r.info.Bytes,
		QueuedBytes: r.guess.queued, PredictedMS: millisOf(r.guess.wait),
	}
}

// ratio is measured ÷ predicted duration, or 0 if nothing was predicted.
func (r demoRow) ratio() float64 {
	if r.guess.wait <= 0 {
		return 0
	}
	return float64(r.info.Duration) / float64(r.guess.wait)
}

// print prints the table and what it says.
func (d *demo) print(modes []*demoMode) {
	w := d.app.streams.Out
	var t table
	t.row("MODE", right("CHECKPOINT"), right("DURATION"), right("SIZE"), right("QUEUED AHEAD"), right("PREDICTED"), right("RATIO"), right("FLINK 2.3.0"), right("SIZE"))
	for _, r := range d.rows {
		ratio, flink, size := "-", "-", "-"
		if v := r.ratio(); v > 0 && r.mode.backPressure { // without, hardly anything is queued
			ratio = fmt.Sprintf("%.2f", v)
		}
		if r.n < len(r.mode.flink) {
			flink, size = fmt.Sprintf("%d ms", r.mode.flink[r.n].Milliseconds()), r.mode.flinkSize
		}
		t.row(r.mode.name, right(fmt.Sprint(int64(r.info.ID))), right(durationText(r.info.Duration)), right(bytesText(r.info.Bytes)),
			right(bytesText(r.guess.queued)), right(durationText(r.guess.wait)), right(ratio), right(flink), right(size))
	}
	fmt.Fprintln(w)
	t.print(w)
	fmt.Fprintln(w, "\npredicted = bytes queued ahead of the barriers ÷ rate at which the slowest subtask drained them before the trigger")
	fmt.Fprintln(w, "Flink's figures are from a laptop, in its own checkpoint experiment")
	for _, m := range modes {
		if m.backPressure {
			fmt.Fprintln(w, d.verdict(m))
		}
	}
}

// verdict says whether the queue explains how long the row's checkpoints took.
func (d *demo) verdict(m *demoMode) string {
	median, n := d.medianRatio(m)
	if n == 0 {
		return m.name + ": nothing was queued, so nothing was predicted"
	}
	word := "explains"
	if median < ratioLow || median > ratioHigh {
		word = "does not explain"
	}
	return fmt.Sprintf("%s: the queue %s the duration: measured ÷ predicted is %.2f in the median of %d (%.2f to %.2f)", m.name, word, median, n, ratioLow, ratioHigh)
}

func (d *demo) medianRatio(m *demoMode) (float64, int) {
	var ratios []float64
	for _, r := range d.rows {
		if v := r.ratio(); r.mode == m && v > 0 {
			ratios = append(ratios, v)
		}
	}
	if len(ratios) == 0 {
		return 0, 0
	}
	slices.Sort(ratios)
	n := len(ratios)
	return (ratios[(n-1)/2] + ratios[n/2]) / 2, n
}
