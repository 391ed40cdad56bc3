// Package jobgraph is the compiled job and its identity.
//
// It owns the logical graph of operators that package flow writes down
// ([Logical]), its canonical text and hash, and [Compile], which groups
// operators into vertices by chaining and gives them a parallelism. It must
// not know closures or how anything is executed.
//
// Invariants:
//
//  1. The canonical text and the hash cover names, kinds, types, partitioning, ports,
//     side outputs and state schemas, and no parallelism (DECISIONS 4).
//  2. Vertices are in topological order; an edge leads from a smaller index to a
//     larger one.
//  3. Compile is a pure function: equal input, equal graph.
//  4. The inputs of a vertex are those of its first operator, in their order; all
//     other operators have one input, within the vertex.
//
// Pure: no goroutine, lock, clock or I/O. Read logical.go, then compile.go.
package jobgraph
