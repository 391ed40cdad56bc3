package netstack

import (
	"github.com/weirflow/weir/netstack/gate"
	"github.com/weirflow/weir/netstack/partition"
)

// TaskIO is the outputs and inputs of one attempt, in the order of its spec.
type TaskIO struct {
	Outputs []*partition.ResultPartition
	Inputs  []*gate.InputGate
}

// Start opens the channels: from now on data flows.
func (t *TaskIO) Start() error { return nil }

// Cancel lets nothing wait any more: an Emit that waits for a buffer returns, and
// outputs drop what is emitted. Consumers are told that the producer failed with this
// cause. Any goroutine may call it.
func (t *TaskIO) Cancel(cause error) {}

// Close ends inputs and outputs, after the task's goroutine has left them. Outputs
// whose last event was broadcast stay readable until they have been read; others fail
// their consumers. Idempotent.
func (t *TaskIO) Close() error { return nil }
