package jobgraph

import "github.com/weirflow/weir"

// Partitioning says how records of an edge choose the consumer's subtask.
type Partitioning uint8

// Partitionings.
const (
	Forward   Partitioning = iota // subtask i to subtask i; needs equal parallelism
	Hash                          // by key group
	Rebalance                     // round robin over all
	Rescale                       // round robin over a few: pointwise, parallelisms need not be equal
	Broadcast                     // every record to all
	Custom                        // by the user's function
)

func (p Partitioning) String() string {
	switch p {
	case Forward:
		return "forward"
	case Hash:
		return "hash"
	case Rebalance:
		return "rebalance"
	case Rescale:
		return "rescale"
	case Broadcast:
		return "broadcast"
	case Custom:
		return "custom"
	}
	return "unknown"
}

// Pointwise says whether a consumer reads from some of the producers only.
func (p Partitioning) Pointwise() bool { return p == Forward || p == Rescale }

// Aligns says whether barriers never overtake data on such an edge (behaviour §17).
func (p Partitioning) Aligns() bool { return p.Pointwise() || p == Broadcast || p == Custom }

// Chaining is a user's wish about fusing an operator with its neighbours.
type Chaining uint8

// Chaining wishes.
const (
	ChainAuto  Chaining = iota // fuse with the producer where possible
	ChainStart                 // start a new chain: never fuse with the producer
	ChainNever                 // fuse with neither producer nor consumers
)

// Kind names what an operator is.
type Kind string

// Kinds.
const (
	KindSource    Kind = "source"
	KindMap       Kind = "map"
	KindFilter    Kind = "filter"
	KindFlatMap   Kind = "flat-map"
	KindProcess   Kind = "process"
	KindCoMap     Kind = "co-map"      // two ports
	KindCoFlatMap Kind = "co-flat-map" // two ports
	KindCoProcess Kind = "co-process"  // two ports
	KindSink      Kind = "sink"
)

// Input is one input of an operator.
type Input struct {
	From string // the producing operator's name
	// Partitioning is Hash after a KeyBy. Forward means "no wish": Compile makes it
	// Rebalance where the parallelisms differ.
	Partitioning Partitioning
	// Port says which logical input of the operator this is, from 0. Inputs of one
	// port carry records of one type: a union has several.
	Port int
	// Partitioner is the name of the user's partitioner of a Custom input, else empty.
	Partitioner string
	// Key is the canonical schema of the key after a KeyBy, else empty.
	Key string
	// Codec is the canonical schema of the records.
	Codec string
	// Side is the name of the producer's side output that is read; empty: its main one.
	Side string
}

// SideOutput is an output of an operator beside its main one.
type SideOutput struct {
	Name string
	Out  string // Go type of the records
}

// State is a keyed state that an operator declares.
type State struct {
	Name, Kind, Key, Value string // Kind: "value", "timers"; schemas in canonical text
}

// Operator is a node of the logical graph.
type Operator struct {
	Name   string
	Kind   Kind
	Inputs []Input
	In     string // Go type of the input records, one for each port, empty for sources
	Out    string // Go type of the output records, empty for sinks
	Sides  []SideOutput
	States []State
	// The rest is physical and not part of the hash.
	Parallelism    int // 0: the job's
	MaxParallelism int // 0: derived
	Chaining       Chaining
}

// Logical is a job's graph as its builder wrote it, operators in the order of
// their definition; producers come before consumers.
type Logical struct {
	Entrypoint string
	Operators  []Operator
	Hooks      []string // names of the master hooks
}

// Digest identifies a logical graph: SHA-256 of its canonical text.
type Digest [32]byte

// JobGraph is the physical plan.
type JobGraph struct {
	Name     string
	Hash     Digest
	Vertices []Vertex
	Edges    []Edge
}

// Vertex is one or more chained operators that run in one task per subtask.
type Vertex struct {
	Index          int
	Name           string   // operators' names joined by " -> "
	Operators      []string // head first, in topological order of the chain
	IDs            []weir.OperatorID
	Source         bool
	Keyed          bool // the head's inputs are partitioned by key
	Parallelism    int
	MaxParallelism int
	MaxConfigured  bool  // the user set MaxParallelism
	Inputs         []int // edge indices; the order is that of the head operator's inputs
	Outputs        []int // edge indices
}

// Edge is an exchange between two vertices, which may have several. Its channels: if
// pointwise those of [weir.PointwiseProducers], which with Forward is one from subtask
// i to subtask i; else one from every producer to every consumer subtask.
type Edge struct {
	Index        int
	From, To     int // vertex indices
	FromOperator string
	ToOperator   string
	Input        int    // index among the inputs of ToOperator
	Side         string // the side output that it carries; empty: the main output
	Partitioning Partitioning
}
