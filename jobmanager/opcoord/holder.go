package opcoord

import "github.com/weirflow/weir"

// Holder is the machine between one operator's coordinator and its subtasks. Only
// the job's loop calls it.
type Holder struct {
	operator weir.OperatorID
	name     string
}

// NewHolder returns the holder of an operator, whose subtasks do not run yet.
func NewHolder(operator weir.OperatorID, name string, parallelism int) *Holder {
	return &Holder{operator: operator, name: name}
}

// Step takes an event and returns what to do, in order.
func (h *Holder) Step(ev Event) []Action { return nil }
