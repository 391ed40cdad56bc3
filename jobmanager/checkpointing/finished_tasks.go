package checkpointing

import "fmt"

// partlyFinishedUnion says why a fully acknowledged checkpoint may not be finalised, if
// so: of a vertex with union state some subtasks have finished, or finished their
// operators, and others have not. What the others would be restored with would lack the
// part of those (behaviour §4).
func (p *PendingCheckpoint) partlyFinishedUnion() string {
	for _, u := range p.plan.Union {
		if u.Finished > 0 {
			return fmt.Sprintf("v%d has union state, and %d of its %d subtasks have finished", u.Vertex, u.Finished, u.Subtasks)
		}
		finished := 0
		for i := range p.states {
			if s := &p.states[i]; s.Attempt.Vertex == u.Vertex && s.State.Finished {
				finished++
			}
		}
		if finished > 0 && finished < u.Subtasks {
			return fmt.Sprintf("v%d has union state, and the operators of %d of its %d subtasks have finished", u.Vertex, finished, u.Subtasks)
		}
	}
	return ""
}
