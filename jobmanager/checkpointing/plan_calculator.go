package checkpointing

// CalculatePlan answers NeedPlan (behaviour §4). vertices are in topological order.
// The error is a *PlanError.
func CalculatePlan(vertices []VertexView, o Options) (*CheckpointPlan, error) { return nil, nil }

// PlanFor answers NeedPlan with an event.
func PlanFor(trigger TriggerID, vertices []VertexView, o Options) PlanCalculated {
	return PlanCalculated{}
}
