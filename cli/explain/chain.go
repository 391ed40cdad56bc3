package explain

import (
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/rpc"
)

// place is a subtask in the graph.
type place struct{ vertex, subtask int32 }

// path is what the way of the barriers is found with.
type path struct {
	c     *rpc.CheckpointInfo
	graph *jobgraph.JobGraph // nil: unknown
	tasks map[place]*rpc.SubtaskCheckpoint
	// last is the subtask at the end of the chain; nil if no statistics of subtasks are
	// there. others are those that are missing beside it.
	last    *rpc.SubtaskCheckpoint
	missing bool
	others  int
}

func newPath(c *rpc.CheckpointInfo, g *jobgraph.JobGraph) *path {
	x := &path{c: c, tasks: make(map[place]*rpc.SubtaskCheckpoint, len(c.Subtasks))}
	if g != nil && sound(g) {
		x.graph = g
	}
	for i := range c.Subtasks {
		t := &c.Subtasks[i]
		x.tasks[placeOf(t)] = t
		if t.Acknowledged > 0 && (x.last == nil || t.Acknowledged > x.last.Acknowledged) {
			x.last = t
		}
	}
	if c.Status != rpc.CheckpointCompleted {
		x.findMissing()
	}
	return x
}

// sound says whether edges and vertices name each other.
func sound(g *jobgraph.JobGraph) bool {
	for _, e := range g.Edges {
		if min(e.From, e.To) < 0 || max(e.From, e.To) >= len(g.Vertices) {
			return false
		}
	}
	for _, v := range g.Vertices {
		for _, e := range v.Inputs {
			if e < 0 || e >= len(g.Edges) {
				return false
			}
		}
	}
	return len(g.Vertices) > 0
}

func placeOf(t *rpc.SubtaskCheckpoint) place { return place{t.Attempt.Vertex, t.Attempt.Subtask} }

// findMissing makes the chain end at a subtask that has not acknowledged, the one nearest
// to the sources: those behind it wait for it. If it did so after the failure, that is
// where the time went.
func (x *path) findMissing() {
	var first *rpc.SubtaskCheckpoint
	n := 0
	for i := range x.c.Subtasks {
		t := &x.c.Subtasks[i]
		if t.Acknowledged > 0 {
			continue
		}
		if n++; first == nil {
			first = t
		}
	}
	if first == nil {
		return // it failed, or waits, in the JobManager
	}
	for range x.tasks { // a graph has no circle; statistics may say what they like
		up := x.missingAbove(first)
		if up == nil {
			break
		}
		first = up
	}
	x.last, x.missing, x.others = first, true, n-1
	for i := range x.c.Late {
		if t := &x.c.Late[i]; placeOf(t) == placeOf(first) {
			x.last = t
			x.tasks[placeOf(t)] = t
		}
	}
}

// missingAbove is a subtask that another reads from and that has not acknowledged.
func (x *path) missingAbove(t *rpc.SubtaskCheckpoint) *rpc.SubtaskCheckpoint {
	for _, p := range x.producers(t) {
		if up := x.tasks[p]; up != nil && up.Acknowledged == 0 {
			return up
		}
	}
	return nil
}

// producers are all that a subtask reads from.
func (x *path) producers(t *rpc.SubtaskCheckpoint) (list []place) {
	for input := range x.inputs(t) {
		first, last := x.channels(t, int32(input))
		for i := first; i < last; i++ {
			list = append(list, place{int32(x.graph.Edges[x.inputs(t)[input]].From), int32(i)})
		}
	}
	return list
}

// inputs are the edges into a subtask's vertex.
func (x *path) inputs(t *rpc.SubtaskCheckpoint) []int {
	if v := int(t.Attempt.Vertex); x.graph != nil && v >= 0 && v < len(x.graph.Vertices) {
		return x.graph.Vertices[v].Inputs
	}
	return nil
}

// channels are the producers [first, last) of a subtask's input.
func (x *path) channels(t *rpc.SubtaskCheckpoint, input int32) (first, last int) {
	inputs := x.inputs(t)
	if input < 0 || int(input) >= len(inputs) {
		return 0, 0
	}
	e := x.graph.Edges[inputs[input]]
	producers, consumers := x.graph.Vertices[e.From].Parallelism, x.graph.Vertices[e.To].Parallelism
	if e.Partitioning.Pointwise() {
		return weir.PointwiseProducers(producers, consumers, int(t.Attempt.Subtask))
	}
	return 0, producers
}

// sender is who sent the barrier that a subtask waited for last, nil if that is not known.
func (x *path) sender(t *rpc.SubtaskCheckpoint) *rpc.SubtaskCheckpoint {
	b := t.Metrics.LastBarrier
	if !b.Came {
		return x.latestAbove(t)
	}
	first, last := x.channels(t, b.Input)
	if b.Channel < 0 || first+int(b.Channel) >= last {
		return nil
	}
	return x.tasks[place{int32(x.graph.Edges[x.inputs(t)[b.Input]].From), int32(first) + b.Channel}]
}

// latestAbove is the one that began its snapshot last among those that a subtask reads
// from, whose barriers did not all come.
func (x *path) latestAbove(t *rpc.SubtaskCheckpoint) (latest *rpc.SubtaskCheckpoint) {
	for _, p := range x.producers(t) {
		if up := x.tasks[p]; up != nil && (latest == nil || began(up) > began(latest)) {
			latest = up
		}
	}
	return latest
}

// began is when a subtask began its snapshot and sent its barriers on: after its last
// barrier, or before, if it overtook.
func began(t *rpc.SubtaskCheckpoint) time.Duration {
	m := &t.Metrics
	at := m.StartDelay + m.AlignmentDuration
	if m.Unaligned {
		at = min(at, max(m.StartDelay, t.Acknowledged-m.SyncDuration-m.AsyncDuration))
	}
	return at
}

// chain is the way of the barrier to the last subtask, source first.
func (x *path) chain() (list []*rpc.SubtaskCheckpoint) {
	for t := x.last; t != nil && !slices.Contains(list, t); t = x.sender(t) {
		list = append(list, t)
	}
	slices.Reverse(list)
	return list
}

// waits are those from the trigger on.
func (x *path) waits() []Wait {
	l := &line{end: max(x.c.Duration, 0)}
	l.step(x.c, rpc.StepLocated, Location)
	l.step(x.c, rpc.StepCoordinated, Coordinators)
	l.step(x.c, rpc.StepHooked, Hooks)
	l.step(x.c, rpc.StepTasksTriggered, Sending)
	_, written := x.c.Step(rpc.StepLastAck)
	written = written && !x.missing
	if _, sent := x.c.Step(rpc.StepTasksTriggered); sent && x.last != nil {
		if written {
			all := *l
			at, _ := x.c.Step(rpc.StepLastAck)
			all.end = min(at, l.end)
			x.barriers(&all)
			all.end = l.end
			*l = all
		} else {
			x.barriers(l)
		}
	}
	if written {
		if at, _ := x.c.Step(rpc.StepLastAck); x.last == nil {
			l.until(at, Wait{Kind: Tasks, At: slowestOf(x.c.Vertices)})
		}
		l.step(x.c, rpc.StepLastAck, Messages)
		x.finish(l)
	}
	l.until(l.end, x.rest(written))
	return l.waits
}

// barriers adds the way of the barriers, and what the last subtask did then.
func (x *path) barriers(l *line) {
	var from *rpc.SubtaskCheckpoint
	for _, t := range x.chain() {
		m := &t.Metrics
		if t == x.last && t.Acknowledged == 0 {
			return // nothing is known of it
		}
		w := Wait{Kind: Busy, At: subtaskOf(t), Input: m.LastBarrier.Input, Channel: m.LastBarrier.Channel, Queued: m.LastBarrier.Queued}
		if len(x.inputs(t)) > 0 || m.LastBarrier.Came {
			w.Kind = Queue
		}
		if from != nil {
			w.From = subtaskOf(from)
		}
		l.until(m.StartDelay, w)
		w.Kind = Alignment
		l.until(began(t), w)
		from = t
	}
	m := &x.last.Metrics
	l.until(began(x.last)+m.SyncDuration, Wait{Kind: Sync, At: subtaskOf(x.last)})
	l.until(began(x.last)+m.SyncDuration+m.AsyncDuration, Wait{Kind: Async, At: subtaskOf(x.last), Bytes: m.StateBytes})
	if !x.missing {
		l.until(x.last.Acknowledged, Wait{Kind: Messages, At: subtaskOf(x.last)})
	}
}

// slowestOf is the subtask that acknowledged last by the sums of vertices.
func slowestOf(vertices []rpc.VertexCheckpoint) (s Subtask) {
	last := time.Duration(-1)
	for _, v := range vertices {
		if v.Slowest >= 0 && v.LastAck > last {
			s, last = Subtask{v.Name, v.Slowest}, v.LastAck
		}
	}
	return s
}

// finish adds what came after the last acknowledgement.
func (x *path) finish(l *line) {
	_, written := x.c.Step(rpc.StepWritten)
	_, began := x.c.Step(rpc.StepLinkBegan)
	_, linked := x.c.Step(rpc.StepLinked)
	l.step(x.c, rpc.StepWritten, Metadata)
	l.step(x.c, rpc.StepLinkBegan, LinkTurn)
	l.step(x.c, rpc.StepLinked, Link)
	switch {
	case linked, x.c.Status == rpc.CheckpointCompleted: // a savepoint has no link
	case began:
		l.until(l.end, Wait{Kind: Link})
	case written:
		l.until(l.end, Wait{Kind: LinkTurn})
	default:
		l.until(l.end, Wait{Kind: Metadata})
	}
}

// rest is what the end of the duration is put down to, if the waits before do not reach
// it.
func (x *path) rest(finishing bool) Wait {
	_, sent := x.c.Step(rpc.StepTasksTriggered)
	switch {
	case x.c.Status == rpc.CheckpointCompleted || finishing:
		return Wait{Kind: Ending}
	case !sent:
		return Wait{Kind: x.stuck()}
	case x.missing && x.last.Acknowledged == 0:
		return Wait{Kind: Missing, At: subtaskOf(x.last), Others: x.others}
	case x.missing:
		return Wait{Kind: Messages, At: subtaskOf(x.last)}
	}
	return Wait{Kind: Ending}
}

// stuck is what a checkpoint waits for whose tasks have not been triggered.
func (x *path) stuck() Kind {
	_, hooked := x.c.Step(rpc.StepHooked)
	_, coordinated := x.c.Step(rpc.StepCoordinated)
	_, located := x.c.Step(rpc.StepLocated)
	switch {
	case hooked:
		return Sending
	case coordinated:
		return Hooks
	case x.c.Kind.IsSavepoint() && !located:
		return Location
	}
	return Coordinators
}

func subtaskOf(t *rpc.SubtaskCheckpoint) Subtask {
	name := t.Vertex
	if name == "" {
		name = "task"
	}
	return Subtask{Vertex: name, Index: t.Attempt.Subtask}
}
