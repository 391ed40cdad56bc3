package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/rpc"
)

// TestBackpressure: a job's graph and its tasks' figures, then what is made of them.
func TestBackpressure(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/backpressure", func(t *testing.T, path string) {
		var detail rpc.JobDetail
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out bytes.Buffer
			switch d.Cmd {
			case "job":
				detail = jobOf(t, d)
			case "tasks":
				setTasks(t, d, &detail)
			case "text":
				printPressure(&out, detail, assess(detail))
			case "json":
				if err := printJSON(&out, pressureJSONOf(detail, assess(detail))); err != nil {
					t.Fatal(err)
				}
				var indented bytes.Buffer
				if err := json.Indent(&indented, out.Bytes(), "", "  "); err != nil {
					t.Fatal(err)
				}
				return indented.String()
			case "levels":
				p := assess(detail)
				for _, v := range p.vertices {
					fmt.Fprintf(&out, "%s %s\n", detail.Graph.Vertices[v.index].Name, v.level)
				}
				fmt.Fprintln(&out, p.verdict(detail))
			default:
				t.Fatalf("unknown command %s", d.Cmd)
			}
			return out.String()
		})
	})
}

// jobOf reads "vertex NAME PARALLELISM" and "edge FROM TO PARTITIONING" lines.
func jobOf(t *testing.T, d *datadriven.TestData) rpc.JobDetail {
	detail := rpc.JobDetail{JobSummary: rpc.JobSummary{Name: "job", Status: rpc.JobRunning}}
	g := &detail.Graph
	for line := range strings.Lines(d.Input) {
		var what, a, b, c string
		_, _ = fmt.Sscan(line, &what, &a, &b, &c)
		switch what {
		case "vertex":
			v := jobgraph.Vertex{Index: len(g.Vertices), Name: a}
			if _, err := fmt.Sscan(b, &v.Parallelism); err != nil {
				t.Fatalf("%s: %q: %v", d.Pos, line, err)
			}
			g.Vertices = append(g.Vertices, v)
		case "edge":
			e := jobgraph.Edge{Index: len(g.Edges), From: place(g, a), To: place(g, b)}
			for e.Partitioning.String() != c {
				e.Partitioning++
			}
			g.Edges = append(g.Edges, e)
			g.Vertices[e.From].Outputs = append(g.Vertices[e.From].Outputs, e.Index)
			g.Vertices[e.To].Inputs = append(g.Vertices[e.To].Inputs, e.Index)
		default:
			t.Fatalf("%s: %q", d.Pos, line)
		}
	}
	return detail
}

func place(g *jobgraph.JobGraph, name string) int {
	for i, v := range g.Vertices {
		if v.Name == name {
			return i
		}
	}
	panic("no vertex " + name)
}

// setTasks reads "VERTEX SUBTASK soft hard busy in out" lines, shares in percent;
// "VERTEX SUBTASK STATE" for a task that does not run.
func setTasks(t *testing.T, d *datadriven.TestData, detail *rpc.JobDetail) {
	detail.Tasks = nil
	for line := range strings.Lines(d.Input) {
		fields := strings.Fields(line)
		task := rpc.TaskDetail{Vertex: fields[0], State: rpc.TaskRunning}
		task.Attempt.Vertex = int32(place(&detail.Graph, fields[0]))
		if _, err := fmt.Sscan(fields[1], &task.Attempt.Subtask); err != nil {
			t.Fatalf("%s: %q: %v", d.Pos, line, err)
		}
		if len(fields) == 3 {
			for task.State.String() != fields[2] {
				task.State++
			}
		} else {
			var shares [5]float64
			for i := range shares {
				if _, err := fmt.Sscan(fields[2+i], &shares[i]); err != nil {
					t.Fatalf("%s: %q: %v", d.Pos, line, err)
				}
				shares[i] /= 100
			}
			s := &task.Stats
			s.SoftBackPressured, s.HardBackPressured, s.BusyRatio, s.InPoolUsage, s.OutPoolUsage = shares[0], shares[1], shares[2], shares[3], shares[4]
			s.BackPressured = s.SoftBackPressured + s.HardBackPressured
			s.IdleRatio = max(0, 1-s.BackPressured-s.BusyRatio)
		}
		detail.Tasks = append(detail.Tasks, task)
	}
}

func TestLevels(t *testing.T) {
	t.Parallel()
	for share, want := range map[float64]level{0: levelOK, 0.10: levelOK, 0.1001: levelLow, 0.50: levelLow, 0.5001: levelHigh, 1: levelHigh} {
		if got := levelOf(share); got != want {
			t.Errorf("%v is %s, want %s", share, got, want)
		}
	}
}

func TestShowJSONHasTheLoad(t *testing.T) {
	t.Parallel()
	d := rpc.JobDetail{Tasks: []rpc.TaskDetail{{Vertex: "v", Stats: rpc.TaskStats{
		BusyRatio: 0.1, BackPressured: 0.7, SoftBackPressured: 0.5, HardBackPressured: 0.2, IdleRatio: 0.3, InPoolUsage: 0.4, OutPoolUsage: 0.6,
		BytesQueuedIn: 7, BytesQueuedOut: 8, BuffersInUse: 9,
	}}}}
	var out bytes.Buffer
	if err := printJSON(&out, detailJSONOf(d)); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Tasks []map[string]any `json:"task_list"`
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]float64{
		"busy": 0.1, "back_pressured": 0.7, "soft_back_pressured": 0.5, "hard_back_pressured": 0.2, "idle": 0.3, "in_pool_usage": 0.4,
		"out_pool_usage": 0.6, "bytes_queued_in": 7, "bytes_queued_out": 8, "buffers_in_use": 9,
	} {
		if got.Tasks[0][field] != want {
			t.Errorf("%s is %v, want %v", field, got.Tasks[0][field], want)
		}
	}
}
