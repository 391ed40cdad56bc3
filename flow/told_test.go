package flow_test

import (
	"slices"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/flow/flowtest"
)

// asks is an operator that looks who is being told while it is told.
type asks struct {
	task **flowtest.Task
	seen *[]string
}

func (a asks) Map(v int) (int, error) { return v, nil }
func (a asks) look() error {
	*a.seen = append(*a.seen, (*a.task).Chain.(interface{ Told() string }).Told())
	return nil
}
func (a asks) NotifyComplete(weir.CheckpointID) error { return a.look() }
func (a asks) NotifyAborted(weir.CheckpointID) error  { return a.look() }

// TestChainNamesWhoIsBeingTold: an operator that hangs there can be named from outside, also
// if several were fused.
func TestChainNamesWhoIsBeingTold(t *testing.T) {
	t.Parallel()
	var task *flowtest.Task
	var seen []string
	job := define(func(g *flow.Graph) {
		a := flow.MapWith(flow.From(g, "in", &numberSource{limit: 1}), "first", asks{&task, &seen})
		flow.To(flow.MapWith(a, "second", asks{&task, &seen}), "out", flow.Discard[int]())
	})
	task = flowtest.Open(t, job, nil, flowtest.Options{})
	for _, err := range []error{task.Chain.NotifyComplete(1), task.Chain.NotifyAborted(2), asks{&task, &seen}.look()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(seen[:2])
	slices.Sort(seen[2:4])
	if want := []string{"first", "second", "first", "second", ""}; !slices.Equal(seen, want) {
		t.Errorf("got %q, want %q", seen, want)
	}
}
