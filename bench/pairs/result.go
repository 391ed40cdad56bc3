package pairs

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// Result compares a subject with its bare loop. Ratios are of cost: 2 means
// that the subject needs twice as much per unit.
type Result struct {
	Name              string  `json:"name"`
	Pairs             int     `json:"pairs"`
	Cost              float64 `json:"cost"`      // median of the pairs' ratios, subject ÷ bare
	CostLow           float64 `json:"cost_low"`  // 95 % interval of the median
	CostHigh          float64 `json:"cost_high"` //
	SubjectNanos      float64 `json:"subject_ns"`
	BareNanos         float64 `json:"bare_ns"`
	AllocsPerUnit     float64 `json:"allocs_per_unit"` // of the subject
	BareAllocsPerUnit float64 `json:"bare_allocs_per_unit"`
	Bar               string  `json:"bar,omitempty"` // empty: reported, not judged
	Met               bool    `json:"met"`           // meaningless without a bar
	Note              string  `json:"note,omitempty"`
}

// Speed is the inverse view: subject's units per time ÷ bare's.
func (r Result) Speed() (median, low, high float64) {
	return 1 / r.Cost, 1 / r.CostHigh, 1 / r.CostLow
}

// CostAtMost returns the result judged by the bar "cost ≤ most".
func (r Result) CostAtMost(most float64) Result {
	r.Bar = fmt.Sprintf("cost ≤ %.3g", most)
	r.Met = r.CostHigh <= most
	return r
}

// SpeedAtLeast returns the result judged by the bar "speed ≥ least".
func (r Result) SpeedAtLeast(least float64) Result {
	_, low, _ := r.Speed()
	r.Bar = fmt.Sprintf("speed ≥ %.3g", least)
	r.Met = low >= least
	return r
}

// Within returns the result judged by the bar "cost between least and most", both ends of
// the interval.
func (r Result) Within(least, most float64) Result {
	r.Bar = fmt.Sprintf("cost %.3g to %.3g", least, most)
	r.Met = r.CostLow >= least && r.CostHigh <= most
	return r
}

// Failed says whether the result misses a bar.
func (r Result) Failed() bool { return r.Bar != "" && !r.Met }

// WriteJSON writes one result a line.
func WriteJSON(w io.Writer, results ...Result) error {
	enc := json.NewEncoder(w)
	for _, r := range results {
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// WriteTable writes the results for people.
func WriteTable(w io.Writer, results ...Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "name\tsubject ns\tbare ns\tcost\t95 % interval\tspeed\tallocs\tpairs\tbar\t")
	for _, r := range results {
		speed, _, _ := r.Speed()
		fmt.Fprintf(t, "%s\t%.4g\t%.4g\t%.3f\t%.3f to %.3f\t%.3f\t%.3g\t%d\t%s\t\n", r.Name, r.SubjectNanos,
			r.BareNanos, r.Cost, r.CostLow, r.CostHigh, speed, r.AllocsPerUnit, r.Pairs, verdict(r))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, r := range results {
		if r.Note != "" {
			fmt.Fprintf(w, "%s: %s\n", r.Name, r.Note)
		}
	}
	return nil
}

func verdict(r Result) string {
	switch {
	case r.Bar == "":
		return "reported"
	case r.Met:
		return r.Bar + ": met"
	default:
		return r.Bar + ": MISSED"
	}
}
