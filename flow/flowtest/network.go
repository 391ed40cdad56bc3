package flowtest

import (
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/operator"
)

// Network is all tasks of a job, with their outputs tied to their inputs. Records
// go on when it is told to, without a buffer, a thread or a checkpoint in between.
type Network struct {
	Graph *jobgraph.JobGraph
	Tasks [][]*Task // by vertex and subtask

	t     testing.TB
	turns map[turn]int
}

// turn is whose round robin it is.
type turn struct{ edge, subtask int }

// OpenAll opens all tasks of a job. Parallelism and Restore of the options are those
// of every task.
func OpenAll(t testing.TB, job flow.Job, params map[string]string, o Options) *Network {
	t.Helper()
	o.Operator, o.Subtask = "", 0
	first := Open(t, job, params, o)
	n := &Network{Graph: first.Graph, t: t, turns: make(map[turn]int)}
	for v := range n.Graph.Vertices {
		vertex := &n.Graph.Vertices[v]
		tasks := make([]*Task, vertex.Parallelism)
		for i := range tasks {
			if v == 0 && i == 0 {
				tasks[0] = first
				continue
			}
			o.Operator, o.Subtask = vertex.Operators[0], i
			tasks[i] = Open(t, job, params, o)
		}
		n.Tasks = append(n.Tasks, tasks)
	}
	return n
}

// Step polls every source once, for at most limit records, and has the records go
// all the way. It says whether any source may have more.
func (n *Network) Step(limit int) (more bool) {
	n.t.Helper()
	for v, tasks := range n.Tasks {
		for i, task := range tasks {
			if n.Graph.Vertices[v].Source {
				more = task.Poll(limit) == operator.SourceMore || more
			}
			n.deliver(task, i)
		}
	}
	return more
}

// Run steps until no source has more.
func (n *Network) Run() {
	n.t.Helper()
	for n.Step(100) {
	}
}

// Finish ends every task, in order: its inputs, one after the other, then itself.
func (n *Network) Finish() {
	n.t.Helper()
	for v, tasks := range n.Tasks {
		for i, task := range tasks {
			for input := range n.Graph.Vertices[v].Inputs {
				if err := task.Chain.EndOfInput(input); err != nil {
					n.t.Fatalf("end of input %d: %v", input, err)
				}
			}
			if err := task.Chain.Finish(); err != nil {
				n.t.Fatalf("finish: %v", err)
			}
			n.deliver(task, i)
		}
	}
}

// deliver hands over what a task has emitted: producers come before consumers.
func (n *Network) deliver(task *Task, subtask int) {
	n.t.Helper()
	for _, out := range task.Outputs {
		e := &out.Edge
		records := out.Take()
		if e.Partitioning == jobgraph.Hash || e.Partitioning == jobgraph.Broadcast {
			for _, to := range n.Tasks[e.To] {
				to.MustFeedInput(e.Input, records)
			}
			continue
		}
		for _, r := range records {
			n.Tasks[e.To][n.choose(e, subtask, r)].MustFeedInput(e.Input, []Record{r})
		}
	}
}

// choose returns the subtask that one record goes to.
func (n *Network) choose(e *jobgraph.Edge, subtask int, r Record) int {
	first, last := 0, n.Graph.Vertices[e.To].Parallelism
	switch e.Partitioning {
	case jobgraph.Forward:
		return subtask
	case jobgraph.Custom:
		return r.To
	case jobgraph.Rescale:
		first, last = weir.PointwiseConsumers(n.Graph.Vertices[e.From].Parallelism, last, subtask)
	}
	at := turn{e.Index, subtask}
	n.turns[at]++
	return first + n.turns[at]%(last-first)
}

// Snapshot is the [Merge] of all tasks' snapshots.
func (n *Network) Snapshot(id weir.CheckpointID) *Snapshot {
	n.t.Helper()
	var parts []*Snapshot
	for _, tasks := range n.Tasks {
		for _, task := range tasks {
			parts = append(parts, task.Snapshot(id))
		}
	}
	return Merge(parts...)
}
