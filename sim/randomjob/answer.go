package randomjob

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirflow/weir/connector/generator"
	"github.com/weirflow/weir/jobgraph"
)

// Answer is what each counting operator has counted, by key.
type Answer map[string]map[int64]Tally

func (a Answer) add(operator string, key int64, r Record) {
	if a[operator] == nil {
		a[operator] = make(map[int64]Tally)
	}
	t := a[operator][key]
	t.add(r)
	a[operator][key] = t
}

// Positions are how far each source was read: by source, its splits.
type Positions [][]generator.Progress

// Expected is the answer after all records, each exactly once.
func Expected(p Params) Answer {
	all := make(Positions, p.Plan().Sources)
	for s := range all {
		all[s] = []generator.Progress{{Splits: 1, Emitted: p.Records}}
	}
	return ExpectedAt(p, all)
}

// ExpectedAt is the answer after the records up to these positions. It is that of a
// checkpoint with nothing in flight.
func ExpectedAt(p Params, at Positions) Answer {
	e := newExpecting(p)
	for s, splits := range at {
		for _, split := range splits {
			for k := range split.Emitted {
				e.source(s, split.Index+k*split.Splits)
			}
		}
	}
	return e.answer
}

func newExpecting(p Params) *expecting {
	e := &expecting{params: p, plan: p.Plan(), answer: make(Answer)}
	e.readers = make(map[reader][]target)
	for i := range e.plan.Nodes {
		for port, inputs := range e.plan.Nodes[i].Ports {
			for _, in := range inputs {
				from := reader{in.From, in.Side}
				e.readers[from] = append(e.readers[from], target{i, port, in.Edge})
			}
		}
	}
	return e
}

// SlowRecords is how many records take the time that the parameter sleep says, copies
// of broadcast records included.
func SlowRecords(p Params) int64 {
	e := newExpecting(p)
	for s := range e.plan.Sources {
		for n := range p.Records {
			e.source(s, n)
		}
	}
	return e.slow
}

// source follows a record of a source.
func (e *expecting) source(s int, n int64) {
	r := e.params.newRecord(s, n)
	if e.plan.Nodes[s].Tail {
		r = e.params.hop(r, e.plan.Nodes[s].place(7))
	}
	e.emit(reader{s, false}, r)
}

type reader struct {
	from int
	side bool
}

type target struct {
	node, port int
	edge       jobgraph.Partitioning
}

type expecting struct {
	params  Params
	plan    Plan
	answer  Answer
	readers map[reader][]target
	slow    int64 // records that slow vertices got
}

// emit follows a record from an output to all its readers.
func (e *expecting) emit(from reader, r Record) {
	for _, to := range e.readers[from] {
		n := &e.plan.Nodes[to.node]
		copies := 1
		if to.edge == jobgraph.Broadcast && !e.plan.Once {
			copies = n.Parallelism
		}
		for range copies {
			e.process(n, to.port, r)
		}
	}
}

func (e *expecting) process(n *Node, port int, r Record) {
	if n.Slow && n.Kind != Alone {
		e.slow++
	}
	switch {
	case n.Kind.Keyed():
		e.answer.add(n.Name, r.Key, r)
	case n.Kind == Alone:
		e.answer.add(n.Name, 0, r)
	}
	n.apply(e.params, port, r,
		func(r Record) { e.emit(reader{n.Index, false}, r) },
		func(r Record) { e.emit(reader{n.Index, true}, r) })
}

// Lacks names the counters that have counted less than they were to: after at-least-once
// checkpoints they may have more.
func Lacks(got, want Answer) string {
	for op, tallies := range want {
		for key, w := range tallies {
			if g := got[op][key]; g.Count < w.Count {
				return fmt.Sprintf("%s, key %d: %d records, want at least %d", op, key, g.Count, w.Count)
			}
		}
	}
	return ""
}

// Diff names a few differences between what was counted and what was to be; it is
// empty if there are none.
func Diff(got, want Answer) string {
	var all []string
	for _, op := range slices.Sorted(maps.Keys(union(got, want))) {
		for _, key := range slices.Sorted(maps.Keys(union(got[op], want[op]))) {
			if g, w := got[op][key], want[op][key]; g != w {
				all = append(all, fmt.Sprintf("%s, key %d: %d records of sum %x, want %d of %x", op, key, g.Count, g.Sum, w.Count, w.Sum))
			}
		}
	}
	if n := len(all); n > 5 {
		all = append(all[:5], fmt.Sprintf("and %d more", n-5))
	}
	return strings.Join(all, "; ")
}

func union[K comparable, V any](a, b map[K]V) map[K]bool {
	keys := make(map[K]bool)
	for k := range a {
		keys[k] = true
	}
	for k := range b {
		keys[k] = true
	}
	return keys
}
