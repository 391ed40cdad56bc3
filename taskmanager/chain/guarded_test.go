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

// blaming knows who ran.
type blaming struct{ faulty }

func (blaming) Running() string { return "count" }

func TestWhatGoesWrongNamesOperatorAndSubtask(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		process func() error
		fault   weir.Fault
		message string
		stack   bool
		noRetry bool
	}{
		{"error", func() error { return errors.New("no such user") }, weir.FaultUser, "processing a record: no such user", false, false},
		{"panic", func() error { panic("boom") }, weir.FaultUser, "panic while processing a record: boom", true, false},
		{"nil map", func() error { var m map[string]int; m["x"] = 1; return nil }, weir.FaultUser, "assignment to entry in nil map", true, false},
		{"assertion", func() error { assert.That(false, "pool"); return nil }, weir.FaultSystem, "assertion failed: pool", true, false},
		{"failure", func() error { return &weir.Failure{Message: "m", Fault: weir.FaultOutside, NoRetry: true} }, weir.FaultOutside, "m", false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := chain.Guard(blaming{faulty{process: tt.process}}, &jobgraph.Vertex{Name: "parse -> count"}, 3)
			var f *weir.Failure
			if err := g.Process(nil); !errors.As(err, &f) {
				t.Fatalf("got %v, want a failure", err)
			}
			if f.Operator != "count" || f.Subtask != 3 || f.Fault != tt.fault || f.NoRetry != tt.noRetry || !strings.Contains(f.Message, tt.message) {
				t.Errorf("got %+v", f)
			}
			if (f.Stack != "") != tt.stack || tt.stack && !strings.Contains(f.Stack, "guarded_test.go") {
				t.Errorf("stack %q", f.Stack)
			}
		})
	}
}

func TestChainThatDoesNotKnowBlamesTheVertex(t *testing.T) {
	t.Parallel()
	g := chain.Guard(faulty{process: func() error { return errors.New("x") }}, &jobgraph.Vertex{Name: "parse -> count"}, 0)
	var f *weir.Failure
	if err := g.Process(nil); !errors.As(err, &f) || f.Operator != "parse -> count" {
		t.Errorf("got %v", err)
	}
}

func TestGuardAllocatesNothing(t *testing.T) {
	g := chain.Guard(faulty{process: func() error { return nil }}, &jobgraph.Vertex{}, 0)
	if got := testing.AllocsPerRun(100, func() { _ = g.Process(nil) }); got != 0 {
		t.Errorf("%v allocations, want 0", got)
	}
}
