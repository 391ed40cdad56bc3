package flow

import "github.com/weirflow/weir/jobgraph"

// Option changes one operator.
type Option func(*node)

// Parallelism sets the number of the operator's subtasks. Default: the job's.
func Parallelism(n int) Option {
	return func(o *node) {
		if n < 1 {
			o.fault("parallelism %d is less than 1", n)
		}
		o.logical.Parallelism = n
	}
}

// MaxParallelism sets the number of key groups, the bound of the operator's
// parallelism for as long as its state lives.
func MaxParallelism(n int) Option {
	return func(o *node) {
		if n < 1 {
			o.fault("maximum parallelism %d is less than 1", n)
		}
		o.logical.MaxParallelism = n
	}
}

// StartNewChain keeps the operator from being fused with its producer.
func StartNewChain() Option {
	return func(o *node) { o.logical.Chaining = max(o.logical.Chaining, jobgraph.ChainStart) }
}

// DisableChaining keeps the operator from being fused with any other.
func DisableChaining() Option {
	return func(o *node) { o.logical.Chaining = jobgraph.ChainNever }
}

// Borrow promises that the operator keeps nothing of a record (no string, no byte
// slice, no pointer) after it returned, copies excepted. If all operators of a
// chain promise it, records are read from the network's own memory, which saves a
// copy.
func Borrow() Option {
	return func(o *node) { o.borrow = true }
}
