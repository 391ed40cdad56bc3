package cli

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/rpc"
)

// TestDemoTable: a script's rows, then what is printed for people or for scripts.
func TestDemoTable(t *testing.T) {
	t.Parallel()
	datadriven.RunTest(t, "testdata/demo", func(t *testing.T, d *datadriven.TestData) string {
		rows := demoRowsOf(t, d)
		var out bytes.Buffer
		switch d.Cmd {
		case "table":
			printDemo(&out, rows)
		case "json":
			for _, r := range rows {
				if err := printJSON(&out, r.json()); err != nil {
					t.Fatal(err)
				}
			}
		default:
			t.Fatalf("unknown command %s", d.Cmd)
		}
		return out.String()
	})
}

// demoRowsOf reads a line per checkpoint: mode, milliseconds, bytes, of these in flight,
// how many of its subtasks were unaligned, bytes queued, bytes drained per second.
func demoRowsOf(t *testing.T, d *datadriven.TestData) (rows []demoRow) {
	const subtasks = 4
	for line := range strings.Lines(d.Input) {
		var name string
		var ms float64
		var size, inFlight, queued int64
		var unaligned int
		var rate float64
		if _, err := fmt.Sscan(line, &name, &ms, &size, &inFlight, &unaligned, &queued, &rate); err != nil {
			t.Fatalf("%s: %q: %v", d.Pos, line, err)
		}
		mode, n := modeOf(t, name), 0
		if last := len(rows) - 1; last >= 0 && rows[last].mode == mode {
			n = rows[last].n + 1
		}
		info := rpc.CheckpointInfo{
			ID: weir.CheckpointID(n + 1), Status: rpc.CheckpointCompleted, Duration: time.Duration(ms * float64(time.Millisecond)),
			Bytes: size, PersistedBytes: inFlight, Unaligned: unaligned > 0,
		}
		for i := range subtasks {
			info.Subtasks = append(info.Subtasks, rpc.SubtaskCheckpoint{Metrics: weir.CheckpointMetrics{
				Unaligned: i < unaligned, QueuedBytes: queued / int64(i+1), DrainRate: rate, // the first is the slowest
			}})
		}
		rows = append(rows, demoRow{mode: mode, n: n, info: info, guess: predict(info)})
	}
	return rows
}

func modeOf(t *testing.T, name string) *demoMode {
	modes, err := selectModes([]string{name})
	if err != nil {
		t.Fatal(err)
	}
	return modes[0]
}

// sampleRows are n checkpoints of each mode.
func sampleRows(n int) (rows []demoRow) {
	for i := range demoModes {
		for k := range n {
			rows = append(rows, demoRow{mode: &demoModes[i], n: k, info: rpc.CheckpointInfo{
				ID: weir.CheckpointID(k + 1), Duration: time.Duration(k+3) * time.Millisecond << (2 * i),
			}})
		}
	}
	return rows
}

func TestDemoModesSetWhatTheirNamesSay(t *testing.T) {
	t.Parallel()
	const slow = 5 * time.Millisecond
	want := map[string]string{
		"aligned":                      "0s",
		"aligned-backpressure":         "5ms",
		"unaligned-backpressure":       "5ms execution.checkpointing.unaligned.enabled=true",
		"aligned-timeout-backpressure": "5ms execution.checkpointing.aligned-checkpoint-timeout=1s execution.checkpointing.unaligned.enabled=true",
		"aligned-faster-sink":          "1ms",
		"aligned-backpressure-debloat": "5ms taskmanager.network.memory.buffer-debloat.enabled=true",
	}
	all, err := selectModes(nil)
	if err != nil || len(all) != len(want) {
		t.Fatalf("%d modes, %v; want %d", len(all), err, len(want))
	}
	for _, m := range all {
		options := []string{m.pace.sleep(slow).String()}
		var set []string
		for k, v := range m.options {
			set = append(set, k+"="+v)
		}
		slices.Sort(set)
		if got := strings.Join(append(options, set...), " "); got != want[m.name] {
			t.Errorf("%s: %q, want %q", m.name, got, want[m.name])
		}
		if len(m.flink) != len(m.flinkSizes) || len(m.flink) > 0 && len(m.flink) != demoCheckpoints {
			t.Errorf("%s: %d published durations and %d sizes", m.name, len(m.flink), len(m.flinkSizes))
		}
	}
	some, err := selectModes([]string{"aligned-faster-sink", "aligned"})
	if err != nil || len(some) != 2 || some[0].name != "aligned" {
		t.Errorf("modes are not in the table's order: %v, %v", some, err)
	}
	var usage usageError
	if _, err := selectModes([]string{"unaligned"}); !errors.As(err, &usage) || !strings.Contains(err.Error(), "unaligned-backpressure") {
		t.Errorf("an unknown mode: %v", err)
	}
}

func TestDemoJSONFields(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := printJSON(&out, sampleRows(1)[0].json()); err != nil {
		t.Fatal(err)
	}
	fields := map[string]any{}
	if err := json.Unmarshal(out.Bytes(), &fields); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"mode", "checkpoint", "duration_ms", "bytes", "persisted_bytes", "unaligned", "queued_bytes", "predicted_ms"} {
		if _, ok := fields[want]; !ok {
			t.Errorf("no %s in %s", want, out.String())
		}
		delete(fields, want)
	}
	if len(fields) > 0 {
		t.Errorf("more fields: %v", fields)
	}
}

// elements parses an SVG and counts its elements by name and by style, failing if it is
// not well-formed.
func elements(t *testing.T, svg []byte) (names, styles map[string]int, texts []string) {
	t.Helper()
	names, styles = map[string]int{}, map[string]int{}
	dec := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return names, styles, texts
		}
		if err != nil {
			t.Fatalf("not well-formed: %v\n%s", err, svg)
		}
		switch x := token.(type) {
		case xml.StartElement:
			names[x.Name.Local]++
			for _, a := range x.Attr {
				if a.Name.Local == "style" && x.Name.Local == "path" {
					styles[a.Value]++
				}
			}
		case xml.CharData:
			if s := strings.TrimSpace(string(x)); s != "" {
				texts = append(texts, s)
			}
		}
	}
}

func TestPlotHasAPointPerCheckpoint(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 6} {
		svg, err := drawPlot(sampleRows(n))
		if err != nil {
			t.Fatal(err)
		}
		names, styles, texts := elements(t, svg)
		if names["svg"] != 1 || names["rect"] > 0 {
			t.Errorf("%v: want one svg, and no rect that covers the background", names)
		}
		for i, m := range demoModes {
			c := plotModes[i].color
			hex, shapes := fmt.Sprintf("#%02X%02X%02X", c.R, c.G, c.B), 0
			for style, count := range styles {
				if strings.Contains(style, hex) && !strings.Contains(style, "stroke-dasharray") && !strings.Contains(style, "stroke-width:1.5") {
					shapes += count
				}
			}
			if shapes != n+1 { // and one in the legend
				t.Errorf("%s: %d marks for %d checkpoints and the legend: %v", m.name, shapes, n, styles)
			}
			if !slices.Contains(texts, m.name) {
				t.Errorf("the legend has no %s: %q", m.name, texts)
			}
		}
		for _, want := range []string{"Duration of a checkpoint", "1 ms", "10 ms", "1 s", "10 s", "Flink 2.3.0, on a laptop", "6"} {
			if !slices.Contains(texts, want) {
				t.Errorf("no text %q: %q", want, texts)
			}
		}
	}
}

// What nothing was measured for must not make the logarithm fail.
func TestPlotOfExtremes(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{0, time.Nanosecond, time.Millisecond, 3 * time.Hour} {
		rows := []demoRow{{mode: &demoModes[3], info: rpc.CheckpointInfo{ID: 1, Duration: d}}}
		svg, err := drawPlot(rows)
		if err != nil {
			t.Fatalf("%s: %v", d, err)
		}
		elements(t, svg)
		if bytes.Contains(svg, []byte("NaN")) || bytes.Contains(svg, []byte("Inf")) {
			t.Errorf("%s: %s", d, svg)
		}
	}
}

func TestPlotIsRefusedBeforeTheExperiment(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "dir.svg"), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, wrong := range map[string]string{
		filepath.Join(dir, "x.svg"):         "",
		filepath.Join(dir, "x.png"):         "must end in .svg",
		filepath.Join(dir, "none", "x.svg"): "no such file",
		filepath.Join(file, "x.svg"):        "not a directory",
		filepath.Join(dir, "svg"):           "must end in .svg",
		filepath.Join(dir, "dir.svg"):       "is a directory",
	} {
		var usage usageError
		err := checkPlot(path)
		if (err == nil) != (wrong == "") || err != nil && (!errors.As(err, &usage) || !strings.Contains(err.Error(), wrong)) {
			t.Errorf("%s: %v, want %q", path, err, wrong)
		}
	}
	path := filepath.Join(dir, "x.svg")
	if err := writePlot(path, sampleRows(2)); err != nil {
		t.Fatal(err)
	}
	if svg, err := os.ReadFile(path); err != nil || !bytes.HasPrefix(svg, []byte("<?xml")) {
		t.Errorf("%v: %.40q", err, svg)
	}
}
