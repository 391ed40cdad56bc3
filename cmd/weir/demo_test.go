package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// demoFields are the fields of a line of weir demo -o json, exactly.
var demoFields = []string{"bytes", "checkpoint", "duration_ms", "mode", "persisted_bytes", "predicted_ms", "queued_bytes", "unaligned"}

func TestDemoMeasuresWhatItsQueuesPredict(t *testing.T) {
	t.Parallel()
	dir, env := tempDirFor(t)
	// 2 ms per record are 1000 records/s in two subtasks, half of what comes.
	out, stderr, err := runWeir(t, built(t, weirBinary), []string{env}, "demo", "--interval", "1s", "--sleep", "2ms", "--duration", "60s", "-o", "json",
		"--mode", "aligned,aligned-backpressure,unaligned-backpressure")
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	leftOver(t, dir)
	byMode := make(map[string][]map[string]any)
	for _, line := range lines(t, out) {
		if got := slices.Sorted(maps.Keys(line)); !slices.Equal(got, demoFields) {
			t.Errorf("fields are %v, want %v", got, demoFields)
		}
		mode, _ := line["mode"].(string)
		byMode[mode] = append(byMode[mode], line)
	}
	for _, mode := range []string{"aligned", "aligned-backpressure", "unaligned-backpressure"} {
		rows := byMode[mode]
		if len(rows) != 6 {
			t.Errorf("%s: %d checkpoints, want 6", mode, len(rows))
			continue
		}
		last := 0.0
		for _, row := range rows {
			if id := row["checkpoint"].(float64); id <= last || row["duration_ms"].(float64) <= 0 || row["bytes"].(float64) <= 0 {
				t.Errorf("%s: %v", mode, row)
			} else {
				last = id
			}
		}
	}
	// The first checkpoint comes after a random part of the interval, perhaps before anything
	// has queued. By the second, half of a whole interval's records have.
	for _, row := range afterFirst(byMode["unaligned-backpressure"]) {
		if inFlight := row["persisted_bytes"].(float64); row["unaligned"].(float64) == 0 || inFlight <= 0 || inFlight >= row["bytes"].(float64) {
			t.Errorf("nothing was overtaken: %v", row)
		}
	}
	var ratios []float64
	for _, row := range afterFirst(byMode["aligned-backpressure"]) {
		if row["queued_bytes"].(float64) <= 0 || row["predicted_ms"].(float64) <= 0 {
			t.Errorf("nothing was queued: %v", row)
			continue
		}
		ratios = append(ratios, row["duration_ms"].(float64)/row["predicted_ms"].(float64))
	}
	slices.Sort(ratios)
	if n := len(ratios); n > 0 {
		if median := (ratios[(n-1)/2] + ratios[n/2]) / 2; median < 0.75 || median > 1.25 {
			t.Errorf("measured ÷ predicted: median of %.2f is %.2f, want 0.75 to 1.25", ratios, median)
		}
	}
}

func afterFirst(rows []map[string]any) []map[string]any { return rows[min(1, len(rows)):] }

func TestDemoPrintsATableAndIsBoundedByItsDuration(t *testing.T) {
	t.Parallel()
	dir, env := tempDirFor(t)
	out, stderr, err := runWeir(t, built(t, weirBinary), []string{env}, "demo", "--mode", "aligned", "--interval", "500ms", "--duration", "2s")
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	leftOver(t, dir)
	for _, want := range []string{"MODE", "CHECKPOINT", "DURATION", "QUEUED AHEAD", "PREDICTED", "FLINK 2.3.0", "41 ms", "5.7 KB", "aligned "} {
		if !strings.Contains(out, want) {
			t.Errorf("the table has no %q:\n%s", want, out)
		}
	}
	if n := strings.Count(out, "\naligned "); n < 1 || n > 4 {
		t.Errorf("%d rows in two seconds, one checkpoint every 500 ms:\n%s", n, out)
	}
	if !strings.Contains(stderr, "checkpoint 1:") {
		t.Errorf("no progress:\n%s", stderr)
	}
}

func TestDemoRefusesWhatMakesNoSense(t *testing.T) {
	t.Parallel()
	bin := built(t, weirBinary)
	for _, x := range []struct {
		says string
		args []string
	}{
		{"unknown mode", []string{"--mode", "unaligned"}},
		{"--rate", []string{"--rate", "0"}},
		{"--interval", []string{"--interval", "0s"}},
		{"--sleep", []string{"--sleep", "-1s"}},
		{"invalid argument", []string{"--interval", "often"}},
	} {
		failsToStart(t, bin, 2, []string{x.says}, append([]string{"demo"}, x.args...)...)
	}
}

func TestDemoSaysWhyItsClusterDied(t *testing.T) {
	t.Parallel()
	dir, env := tempDirFor(t)
	// The JobManager kills itself when the first checkpoint is a link.
	_, stderr, err := runWeir(t, built(t, stoppableBinary), []string{env, "WEIR_STOPPOINT=linked"}, "demo", "--mode", "aligned", "--interval", "200ms")
	if exitCode(err) != 1 || !strings.Contains(stderr, "jobmanager ended: signal: killed") || !strings.Contains(stderr, "RUNNING") {
		t.Errorf("%v\n%s", err, stderr)
	}
	leftOver(t, dir)
}
