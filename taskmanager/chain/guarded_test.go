package chain_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/assert"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/taskmanager/chain"
)

// faulty is a chain of which only Process does something.
type faulty struct {
	operator.Chain
	process func() error
}

func (f faulty) Process(*operator.Batch) error { return f.process() }

func TestWhatGoesWrongNamesOperatorAndSubtask(t *testing.T) {
	t.Parallel()
	const whole = "parse -> count"
	for _, tt := range []struct {
		name     string
		process  func() error
		fault    weir.Fault
		message  string
		stack    bool
		noRetry  bool
		operator string
	}{
		{"error", func() error { return errors.New("no such user") }, weir.FaultUser, "processing a record: no such user", false, false, whole},
		{"panic", func() error { panic("boom") }, weir.FaultUser, "panic while processing a record: boom", true, false, whole},
		{"out of range", func() error { var none []int; _ = none[len(none)]; return nil }, weir.FaultUser, "index out of range", true, false, whole},
		{"assertion", func() error { assert.That(false, "pool"); return nil }, weir.FaultSystem, "assertion failed: pool", true, false, whole},
		{"failure", func() error {
			return &weir.Failure{Message: "m", Fault: weir.FaultOutside, NoRetry: true, Operator: "count"}
		}, weir.FaultOutside, "m", false, true, "count"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := chain.Guard(faulty{process: tt.process}, &jobgraph.Vertex{Name: "parse -> count"}, 3)
			var f *weir.Failure
			if err := g.Process(nil); !errors.As(err, &f) {
				t.Fatalf("got %v, want a failure", err)
			}
			if f.Operator != tt.operator || f.Subtask != 3 || f.Fault != tt.fault || f.NoRetry != tt.noRetry || !strings.Contains(f.Message, tt.message) {
				t.Errorf("got %+v", f)
			}
			if (f.Stack != "") != tt.stack || tt.stack && !strings.Contains(f.Stack, "guarded_test.go") {
				t.Errorf("stack %q", f.Stack)
			}
		})
	}
}

func TestGuardAllocatesNothing(t *testing.T) {
	g := chain.Guard(faulty{process: func() error { return nil }}, &jobgraph.Vertex{}, 0)
	if got := testing.AllocsPerRun(100, func() { _ = g.Process(nil) }); got != 0 {
		t.Errorf("%v allocations, want 0", got)
	}
}
