package sim

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/sim/randomjob"
	"github.com/weirflow/weir/snapshotmeta"
)

// GraphPlan is a random graph that is run as several jobs: each but the first starts
// from a checkpoint of the first, at a parallelism of its own.
type GraphPlan struct {
	Stages []Stage
	// stage is the job that runs now, or did last.
	stage int
	// first are the links of the first job that the others may start from.
	first []*checkedLink
}

// Stage is one of the jobs.
type Stage struct {
	Params  randomjob.Params
	Mode    Mode
	Options map[string]string
}

// Mode is how barriers pass.
type Mode string

// Modes.
const (
	Aligned     Mode = "aligned"
	AtLeastOnce Mode = "at least once"
	Unaligned   Mode = "unaligned"
	TimesOut    Mode = "times out" // aligned barriers overtake when they are old
)

// ofGraphs says which seeds run random graphs.
func ofGraphs(seed uint64) bool { return seed%5 < 2 || seed%5 == 3 }

// graph turns the plan into one of a random graph.
func (p *Plan) graph(rng *rand.Rand) {
	for p.TaskManagers*p.Slots < 4 {
		p.Slots++
	}
	p.Faults = slices.DeleteFunc(p.Faults, func(k Kind) bool { return k == UserError || k == UserPanic })
	g := randomjob.Params{
		Seed: rng.Uint64() >> 1, Widths: rng.Uint64() >> 1, Once: rng.IntN(4) > 0, Records: int64(50 + rng.IntN(250)),
		Keys: oneOf[int64](rng, 1, 5, 40), Size: oneOf(rng, flow.Size(20), 300, 3000), Large: oneOf(rng, flow.Size(0), 0, 20_000, 80_000),
	}
	// Either the slow vertex or the sources take about as long as the first phase does:
	// the data of most jobs is in flight or is still to come then.
	lasts := time.Duration(float64(p.Life) * (1 + 2*rng.Float64()))
	slow := randomjob.SlowRecords(g)
	for range 6 {
		if slow >= g.Records/2 {
			break
		}
		g.Seed = rng.Uint64() >> 1
		slow = randomjob.SlowRecords(g)
	}
	if slow > 0 && rng.IntN(8) > 0 {
		g.Sleep = min(lasts/time.Duration(slow), 100*time.Millisecond).Round(time.Microsecond)
	} else {
		g.Rate = float64(g.Records) / lasts.Seconds()
	}
	p.Graph = &GraphPlan{}
	exclusive, buffers := oneOf(rng, 0, 0, 1, 2), 0
	for range 3 {
		s := Stage{Params: g, Mode: oneOf(rng, Aligned, AtLeastOnce, Unaligned, Unaligned, Unaligned, TimesOut, TimesOut, TimesOut)}
		if len(p.Graph.Stages) > 0 && s.Mode == AtLeastOnce {
			s.Mode = Unaligned // what starts from an exact checkpoint ends exactly
		}
		s.Options = s.options(rng, p.Options, exclusive)
		buffers = max(buffers, buffersOf(s, exclusive))
		p.Graph.Stages = append(p.Graph.Stages, s)
		if g.Once {
			g.Widths = rng.Uint64() >> 1
		}
	}
	p.Memory = int64(buffers) * oneOf[int64](rng, 1, 1, 4) * 32768
}

// options draws what goes beyond the options of other jobs.
func (s Stage) options(rng *rand.Rand, others map[string]string, exclusive int) map[string]string {
	o := maps.Clone(others)
	o["taskmanager.network.memory.buffers-per-channel"] = fmt.Sprint(exclusive)
	o["pipeline.operator-chaining.enabled"] = "true"
	o["taskmanager.network.memory.buffer-debloat.enabled"] = fmt.Sprint(rng.IntN(3) == 0)
	o["taskmanager.network.memory.buffer-debloat.period"] = oneOf(rng, "20ms", "200ms")
	o["taskmanager.network.memory.buffer-debloat.target"] = oneOf(rng, "10ms", "300ms")
	o["execution.checkpointing.unaligned.max-subtasks-per-channel-state-file"] = oneOf(rng, "1", "2", "5")
	o["execution.checkpointing.unaligned.channel-state-memory"] = oneOf(rng, "64mb", "64mb", "64mb", "100kb")
	o["execution.checkpointing.timeout"] = oneOf(rng, "100ms", "500ms", "3s", "10s")
	if s.Params.Sleep >= 5*time.Millisecond {
		o["execution.checkpointing.timeout"] = oneOf(rng, "1s", "10s")
	}
	// A producer in the middle of a record cannot emit its barrier, and perhaps no room
	// comes free until it does (docs/testing.md): then only the timeout helps.
	o["taskmanager.network.memory.max-overdraft-buffers-per-gate"] = "5"
	if s.Params.Large > 0 || s.Params.Size > 300 {
		o["taskmanager.network.memory.buffer-debloat.enabled"] = "false"
	}
	switch s.Mode {
	case AtLeastOnce:
		o["execution.checkpointing.mode"] = "AT_LEAST_ONCE"
	case Unaligned:
		o["execution.checkpointing.unaligned.enabled"] = "true"
	case TimesOut:
		o["execution.checkpointing.unaligned.enabled"] = "true"
		o["execution.checkpointing.aligned-checkpoint-timeout"] = oneOf(rng, "1ms", "10ms", "50ms", "200ms")
	}
	return o
}

// buffersOf is how many buffers all tasks of a job need at least.
func buffersOf(s Stage, exclusive int) int {
	program, err := randomjob.Job.Build(s.Params.Map())
	if err != nil {
		panic(err)
	}
	g, err := jobgraph.Compile(program.Logical(), jobgraph.Options{Parallelism: 1})
	if err != nil {
		panic(err)
	}
	n := 0
	for _, e := range g.Edges {
		producers, consumers := g.Vertices[e.From].Parallelism, g.Vertices[e.To].Parallelism
		n += producers*(consumers+1) + consumers*(producers*exclusive+1)
	}
	return max(n, 1)
}

// submitGraph submits a stage's job.
func (w *World) submitGraph(stage int, from *checkedLink) *customer {
	g := w.Plan.Graph
	g.stage = stage
	s := g.Stages[stage]
	r := rpc.SubmitRequest{
		Entrypoint: randomjob.Name, Name: fmt.Sprintf("graph-%d", stage), RequestID: fmt.Sprintf("request-%d", stage),
		Options: s.Options, Params: s.Params.Map(),
	}
	var origin weir.CheckpointID
	if from != nil {
		origin = from.link.Checkpoint
		r.From = path.Dir(from.link.Metadata)
		w.trace("job", "stage %d, %s, from checkpoint %d with %d bytes in flight", stage, s.Mode, from.link.Checkpoint, from.bytes)
		if from.bytes > 0 {
			w.marks.add(MarkRecovered)
			if s.Params.Widths != g.Stages[0].Params.Widths {
				w.marks.add(MarkRescaled)
			}
		}
	}
	return w.submit(r, origin, false)
}

// anyInFlight says whether there was data in flight in a link that is retained.
func (o *Oracle) anyInFlight() bool {
	for _, c := range o.checked {
		if c.bytes > 0 {
			return true
		}
	}
	return false
}

// moveInLife lives a part of the first phase, cancels the first job, and starts the second
// from one of its checkpoints, for the rest of the phase. If the faults let no checkpoint
// with data in flight be completed, there are none for a while.
func (w *World) moveInLife(c *customer) *customer {
	for w.age() < w.Plan.Life/2 && w.steps < maxSteps/2 && (w.age() < w.Plan.Life/3 || !w.oracle.anyInFlight()) {
		w.step()
	}
	if !w.oracle.anyInFlight() {
		w.heal()
		until := w.now().Add(w.Plan.Life)
		w.rushUntil("the first job moves", healBound, func() bool {
			return w.oracle.anyInFlight() || w.oracle.exact != 0 || w.now().After(until)
		})
		w.healed = false
	}
	c.cancel.Store(true)
	for until, most := w.age()+w.Plan.Life/4, w.steps+maxSteps/4; w.age() < until && w.steps < most && !c.canceled.Load(); {
		w.step()
	}
	if !c.canceled.Load() {
		w.heal()
		w.rushUntil("the first job is canceled", healBound, c.canceled.Load)
		w.healed = false
	}
	w.oracle.look()
	for _, n := range slices.Sorted(maps.Keys(w.oracle.checked)) {
		w.Plan.Graph.first = append(w.Plan.Graph.first, w.oracle.checked[n])
	}
	c = w.submitGraph(1, w.someLink())
	for until, most := w.age()+w.Plan.Life/2, w.steps+maxSteps/2; w.age() < until && w.steps < most; {
		w.step()
	}
	return c
}

// moveAfter starts the first job a third time, from the same checkpoint or another, in
// a world without faults, if the seed wants it.
func (w *World) moveAfter(c *customer) *customer {
	from := w.someLink()
	if from == nil || w.rng.IntN(2) == 0 {
		return c
	}
	c.cancel.Store(true)
	w.rushUntil("the second job is canceled", healBound, c.canceled.Load)
	c = w.submitGraph(2, from)
	w.rushUntil("the third job has its whole answer", healBound, func() bool { return w.oracle.exact != 0 })
	return c
}

// someLink chooses a link of the first job, rather one with data in flight, or nil.
func (w *World) someLink() *checkedLink {
	of := w.Plan.Graph.first
	if full := slices.DeleteFunc(slices.Clone(of), func(c *checkedLink) bool { return c.bytes == 0 }); len(full) > 0 && w.rng.IntN(4) > 0 {
		of = full
	}
	if len(of) == 0 || w.Plan.Graph.Stages[0].Mode == AtLeastOnce {
		return nil
	}
	return oneOf(w.rng, of...)
}

// readGraph compares a checkpoint of a random graph with what its sources' positions say:
// what was counted and what was in flight make the answer.
func (w *World) readGraph(ctx context.Context, s *snapshotmeta.Snapshot, c *checkedLink) error {
	g := w.Plan.Graph
	stage := g.Stages[g.stage]
	files := snapshotmeta.Files{Store: w.disk, Dir: snapshotmeta.JobDir(s.Header.Job)}
	got, at, err := randomjob.ReadSnapshot(ctx, s, files, stage.Params)
	if err != nil {
		return err
	}
	want := randomjob.ExpectedAt(stage.Params, at)
	for _, h := range s.Channels {
		c.bytes += max(h.Handle.Length, int64(len(h.Handle.Inline)))
	}
	w.trace("read", "checkpoint %d: sources at %v, %d bytes in flight", c.link.Checkpoint, at, c.bytes)
	if stage.Mode == AtLeastOnce {
		if len(s.Channels) > 0 {
			return fmt.Errorf("%d channels with data in flight", len(s.Channels))
		}
		c.whole = randomjob.Lacks(got, randomjob.Expected(stage.Params)) == "" && atEnd(stage.Params, at)
		if lacks := randomjob.Lacks(got, want); lacks != "" {
			return fmt.Errorf("less than at least once: sources are at %v; %s", at, lacks)
		}
		return nil
	}
	if err := w.markInFlight(stage, s); err != nil {
		return err
	}
	c.whole = len(s.Channels) == 0 && randomjob.Diff(got, randomjob.Expected(stage.Params)) == ""
	if err := randomjob.AddInFlight(ctx, s, files, stage.Params, got); err != nil {
		return err
	}
	if diff := randomjob.Diff(got, want); diff != "" {
		return fmt.Errorf("not exactly once: sources are at %v, %d bytes were in flight; %s", at, c.bytes, diff)
	}
	return nil
}

// markInFlight notes what is in flight, where that may be.
func (w *World) markInFlight(stage Stage, s *snapshotmeta.Snapshot) error {
	switch {
	case len(s.Channels) == 0:
	case stage.Mode == Aligned:
		return fmt.Errorf("%d channels with data in flight in an aligned checkpoint", len(s.Channels))
	case stage.Mode == TimesOut:
		w.marks.add(MarkTimedOut)
	default:
		w.marks.add(MarkInFlight)
	}
	return nil
}

// atEnd says whether the sources have emitted all their records.
func atEnd(p randomjob.Params, at randomjob.Positions) bool {
	for _, splits := range at {
		var n int64
		for _, split := range splits {
			n += split.Emitted
		}
		if n < p.Records {
			return false
		}
	}
	return true
}
