package cli

import (
	"slices"

	"github.com/weirflow/weir/rpc"
)

// level is how much back pressure an operator feels.
type level string

// Levels, by the share of time in which the worst subtask waits for room in its output.
const (
	levelUnknown level = "-" // no subtask runs
	levelOK      level = "ok"
	levelLow     level = "low"
	levelHigh    level = "high"

	okLimit  = 0.10 // ok up to here
	lowLimit = 0.50 // low up to here
)

// What makes an operator that is not back-pressured the bottleneck.
const (
	busyLimit = 0.50 // it has work more than this share of the time
	fullLimit = 0.90 // and at least this share of its input pool in use
)

func levelOf(share float64) level {
	switch {
	case share <= okLimit:
		return levelOK
	case share <= lowLimit:
		return levelLow
	default:
		return levelHigh
	}
}

// vertexPressure is what an operator, or a chain of them, feels.
type vertexPressure struct {
	index    int // in the graph
	level    level
	stats    rpc.TaskStats // of its worst subtask
	slow     []int32       // subtasks that are busy, not back-pressured, and have a full input pool
	subtasks []subtaskPressure
}

// subtaskPressure is what one running subtask feels.
type subtaskPressure struct {
	subtask int32
	level   level
	stats   rpc.TaskStats
}

// worseThan compares with another subtask: of two that are not back-pressured the busier
// is worse.
func (s subtaskPressure) worseThan(other rpc.TaskStats) bool {
	if s.level == levelOK && levelOf(other.BackPressured) == levelOK {
		return s.stats.BusyRatio > other.BusyRatio
	}
	return s.stats.BackPressured > other.BackPressured
}

// pressure is the back pressure in a job.
type pressure struct {
	vertices []vertexPressure // upstream first
	// bottleneck is an index of vertices, or -1.
	bottleneck int
}

// assess finds who is back-pressured, and by whom. Only running tasks count.
func assess(d rpc.JobDetail) pressure {
	p := pressure{bottleneck: -1}
	place := make(map[int]int) // of a vertex of the graph in p.vertices
	for _, v := range downstream(d) {
		place[v] = len(p.vertices)
		p.vertices = append(p.vertices, assessVertex(d, v))
	}
	// The first operator downstream that is the cause. Whatever gets data from a
	// back-pressured operator, directly or not, may be it.
	below := make([]bool, len(p.vertices))
	for i, v := range p.vertices {
		if below[i] && p.bottleneck < 0 && v.level == levelOK && len(v.slow) > 0 {
			p.bottleneck = i
		}
		for _, e := range d.Graph.Vertices[v.index].Outputs {
			if felt := v.level == levelLow || v.level == levelHigh; felt || below[i] {
				below[place[d.Graph.Edges[e].To]] = true
			}
		}
	}
	return p
}

func assessVertex(d rpc.JobDetail, index int) vertexPressure {
	v := vertexPressure{index: index, level: levelUnknown}
	for _, t := range d.Tasks {
		if int(t.Attempt.Vertex) != index || t.State != rpc.TaskRunning {
			continue
		}
		s := subtaskPressure{subtask: t.Attempt.Subtask, level: levelOf(t.Stats.BackPressured), stats: t.Stats}
		if len(v.subtasks) == 0 || s.worseThan(v.stats) {
			v.level, v.stats = s.level, s.stats
		}
		if s.level == levelOK && s.stats.BusyRatio > busyLimit && s.stats.InPoolUsage >= fullLimit {
			v.slow = append(v.slow, s.subtask)
		}
		v.subtasks = append(v.subtasks, s)
	}
	slices.Sort(v.slow)
	slices.SortFunc(v.subtasks, func(a, b subtaskPressure) int { return int(a.subtask) - int(b.subtask) })
	return v
}

// downstream lists the vertices so that each comes after all that feed it; of several
// that could be next the one with the smallest index is.
func downstream(d rpc.JobDetail) (order []int) {
	waitsFor := make([]int, len(d.Graph.Vertices))
	for _, e := range d.Graph.Edges {
		waitsFor[e.To]++
	}
	for len(order) < len(waitsFor) {
		next := slices.Index(waitsFor, 0)
		if next < 0 {
			return order // a cycle, which no job has
		}
		waitsFor[next] = -1
		order = append(order, next)
		for _, e := range d.Graph.Vertices[next].Outputs {
			waitsFor[d.Graph.Edges[e].To]--
		}
	}
	return order
}
