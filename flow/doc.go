// Package flow is how users write jobs: typed streams, and their compilation into
// a logical graph and fused chains.
//
// It owns [Job], [Graph], [Stream], how records are dealt ([Rebalance], [Broadcast],
// [PartitionBy], [KeyBy]), [Union] and [Connect], and what a user's operator may do
// ([Runtime], [Context], [Value], [Out], [SideOutput]); and the fusing of typed functions into an
// operator.Chain. It must not know how tasks are scheduled, how bytes travel or
// where state lies: it sees operator.Env and statebackend.Table.
//
// A user defines a job and gives it to daemon.Main:
//
//	var Job = flow.Define("word-count", func(g *flow.Graph, p Params) error {
//		lines := flow.From(g, "lines", p.source())
//		words := flow.FlatMap(lines, "split", strings.FieldsSeq)
//		byWord := flow.KeyBy(words, "by-word", func(w string) string { return w })
//		counts := flow.Process(byWord, "count", newCounter)
//		flow.To(counts, "out", flow.Discard[Count]())
//		return nil
//	})
//
// Functions rather than methods, since methods take no type parameters. Every
// operator has a name: state is found by it. All faults of a graph are reported
// together.
//
// Invariants:
//
//  1. A builder runs once for every attempt; operators and what their functions
//     capture are an attempt's own and used by its task's goroutine alone.
//  2. Types are asserted when a chain is fused, never per record.
//  3. Nothing on the path of a record allocates, boxes, reflects or locks, users'
//     functions and types with their own encodings excepted.
//  4. A panic or an error of a user's function is the failure of its task, with
//     the operator named.
//  5. A record that was emitted must not be changed: its other consumers see it too.
//  6. An operator has an inlet for each edge that leads to it, numbered as the edges'
//     Input and as Batch.Input; the inlets of a union are of one port. Only an operator with
//     one inlet is fused with its producer.
//
// One goroutine is started here, for each run of a builder, through
// internal/group, so that a builder that hangs can be given up (catalog.go). No locks.
// Read stream.go first, then graph.go and chain.go; tests of operators use flowtest.
package flow
