package checkpointing

import (
	"testing"
)

// BenchmarkPlan10000 is a plan of 10,000 subtasks, of which one has finished.
func BenchmarkPlan10000(b *testing.B) {
	view := []VertexView{vertexView(testJob, 0, 5000), vertexView(testJob, 1, 5000)}
	view[1].Inputs = []InputView{{From: 0}}
	view[0].Subtasks[7].Status = TaskFinished
	b.ReportAllocs()
	for b.Loop() {
		if _, err := CalculatePlan(view, Defaults()); err != nil {
			b.Fatal(err)
		}
	}
}
