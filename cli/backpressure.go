package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/client"
	"github.com/weirflow/weir/rpc"
)

func (a *app) backpressureCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "backpressure JOB",
		Short: "Show which operators are back-pressured, and which one is the cause",
		Long: `Backpressure prints a job's graph, named by its id or by its name, with the back pressure of
each operator: the share of the last second in which its worst subtask waited for room in an
output, between two records (soft) or within one (hard). Up to 10 % is ok, up to 50 % low,
more is high.

The bottleneck is the first operator downstream of a back-pressured one that is busy, is not
back-pressured itself, and whose input pool is full. Raise its parallelism or make it faster.`,
		Args: exactly(1, "the id or name of a job"),
		RunE: a.withClient(func(ctx context.Context, c *client.Client, args []string) error {
			d, err := c.Get(ctx, args[0])
			if err != nil {
				return err
			}
			if a.json() {
				return printJSON(a.streams.Out, pressureJSONOf(d, assess(d)))
			}
			printPressure(a.streams.Out, d, assess(d))
			return nil
		}),
	}
}

// printPressure draws the graph, upstream first, and says what it means.
func printPressure(w io.Writer, d rpc.JobDetail, p pressure) {
	fmt.Fprintf(w, "job %s (%s) is %s\n", d.Name, d.Job, d.Status)
	if len(p.vertices) == 0 {
		return
	}
	var t table
	t.row("OPERATOR", "LEVEL", right("BACK-PRESSURED"), right("SOFT"), right("HARD"), right("BUSY"), right("IDLE"),
		right("INPUT POOL"), right("OUTPUT POOL"), "")
	for i, v := range p.vertices {
		vertex, s, note := d.Graph.Vertices[v.index], v.stats, ""
		if i == p.bottleneck {
			note = "<- bottleneck"
		}
		name := fmt.Sprintf("%d  %s  × %d", v.index, vertex.Name, vertex.Parallelism)
		if len(v.subtasks) == 0 {
			t.row(name, string(v.level))
		} else {
			in, out := "-", "-"
			if len(vertex.Inputs) > 0 {
				in = percent(s.InPoolUsage)
			}
			if len(vertex.Outputs) > 0 {
				out = percent(s.OutPoolUsage)
			}
			t.row(name, string(v.level), right(percent(s.BackPressured)), right(percent(s.SoftBackPressured)), right(percent(s.HardBackPressured)),
				right(percent(s.BusyRatio)), right(percent(s.IdleRatio)), right(in), right(out), note)
		}
		for _, e := range vertex.Outputs {
			edge := d.Graph.Edges[e]
			t.row(fmt.Sprintf("   └─ %s ─> %d", edge.Partitioning, edge.To))
		}
	}
	fmt.Fprintln(w)
	t.print(w)
	fmt.Fprintf(w, "\nfigures are those of each operator's worst subtask: the most back-pressured one, or else the busiest\n%s\n", p.verdict(d))
}

// verdict names the bottleneck, or says why there is none.
func (p pressure) verdict(d rpc.JobDetail) string {
	if p.bottleneck >= 0 {
		v := p.vertices[p.bottleneck]
		which := "its input pool is full"
		if all := len(v.subtasks); len(v.slow) < all {
			which = fmt.Sprintf("the input pool of %s is full", subtasksText(v.slow))
		}
		return fmt.Sprintf("bottleneck: %s: %s, it is busy and not back-pressured", d.Graph.Vertices[v.index].Name, which)
	}
	var running, felt bool
	for _, v := range p.vertices {
		running = running || len(v.subtasks) > 0
		felt = felt || v.level == levelLow || v.level == levelHigh
	}
	switch {
	case !running:
		return "no task runs"
	case felt:
		return "no bottleneck: no operator downstream is busy, not back-pressured, and has a full input pool; data may come in bursts, so look again"
	default:
		return "no operator is back-pressured"
	}
}

// subtasksText names subtasks: subtask 1, subtasks 1 and 3.
func subtasksText(subtasks []int32) string {
	var texts []string
	for _, s := range subtasks {
		texts = append(texts, fmt.Sprint(s))
	}
	if len(texts) == 1 {
		return "subtask " + texts[0]
	}
	last := len(texts) - 1
	return "subtasks " + strings.Join(texts[:last], ", ") + " and " + texts[last]
}

// pressureJSON is a job's back pressure for scripts.
type pressureJSON struct {
	Job        string             `json:"job"`
	Name       string             `json:"name"`
	Status     string             `json:"status"`
	Bottleneck *bottleneckJSON    `json:"bottleneck"` // null if there is none
	Vertices   []vertexLevelsJSON `json:"vertices"`   // upstream first
	Edges      []edgeJSON         `json:"edges"`
}

type bottleneckJSON struct {
	Index    int     `json:"index"`
	Vertex   string  `json:"vertex"`
	Subtasks []int32 `json:"subtasks"`
}

type vertexLevelsJSON struct {
	Index       int               `json:"index"`
	Vertex      string            `json:"vertex"`
	Parallelism int               `json:"parallelism"`
	Level       string            `json:"level"` // that of the worst subtask; - if none runs
	Subtasks    []subtaskLoadJSON `json:"subtasks"`
}

type subtaskLoadJSON struct {
	Subtask int32  `json:"subtask"`
	Level   string `json:"level"`
	loadJSON
}

// loadJSON is how a task spends its time and how full its pools are.
type loadJSON struct {
	Busy              float64 `json:"busy"`
	BackPressured     float64 `json:"back_pressured"`
	SoftBackPressured float64 `json:"soft_back_pressured"`
	HardBackPressured float64 `json:"hard_back_pressured"`
	Idle              float64 `json:"idle"`
	InPoolUsage       float64 `json:"in_pool_usage"`
	OutPoolUsage      float64 `json:"out_pool_usage"`
}

func loadJSONOf(s rpc.TaskStats) loadJSON {
	return loadJSON{
		Busy: s.BusyRatio, BackPressured: s.BackPressured, SoftBackPressured: s.SoftBackPressured, HardBackPressured: s.HardBackPressured,
		Idle: s.IdleRatio, InPoolUsage: s.InPoolUsage, OutPoolUsage: s.OutPoolUsage,
	}
}

func pressureJSONOf(d rpc.JobDetail, p pressure) pressureJSON {
	out := pressureJSON{
		Job: d.Job.String(), Name: d.Name, Status: d.Status.String(), Vertices: []vertexLevelsJSON{}, Edges: []edgeJSON{},
	}
	if p.bottleneck >= 0 {
		v := p.vertices[p.bottleneck]
		out.Bottleneck = &bottleneckJSON{v.index, d.Graph.Vertices[v.index].Name, v.slow}
	}
	for _, v := range p.vertices {
		vertex := d.Graph.Vertices[v.index]
		levels := vertexLevelsJSON{v.index, vertex.Name, vertex.Parallelism, string(v.level), []subtaskLoadJSON{}}
		for _, s := range v.subtasks {
			levels.Subtasks = append(levels.Subtasks, subtaskLoadJSON{s.subtask, string(s.level), loadJSONOf(s.stats)})
		}
		out.Vertices = append(out.Vertices, levels)
	}
	for _, e := range d.Graph.Edges {
		out.Edges = append(out.Edges, edgeJSONOf(e))
	}
	return out
}
