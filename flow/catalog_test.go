package flow_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/operator"
)

func catalog(t testing.TB, jobs ...flow.Job) operator.Catalog {
	t.Helper()
	c, err := flow.NewCatalog(jobs...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func simpleJob(name string) flow.Job {
	return flow.Define(name, func(g *flow.Graph, _ struct{}) error {
		flow.To(flow.From(g, "in", numbers(1)), "out", flow.Discard[int]())
		return nil
	})
}

func TestEntrypointsAreListedByName(t *testing.T) {
	t.Parallel()
	second := flow.Define("b", func(*flow.Graph, allParams) error { return nil }).Help("second")
	list := catalog(t, second, simpleJob("a")).Entrypoints()
	if len(list) != 2 || list[0].Name != "a" || list[1].Name != "b" || list[1].Help != "second" {
		t.Fatalf("%+v", list)
	}
	want := operator.Param{Name: "max-wait", Type: "duration", Default: "5ms"}
	if list[1].Params[5] != want {
		t.Errorf("%+v", list[1].Params[5])
	}
}

func TestUnknownEntrypointListsTheKnownOnes(t *testing.T) {
	t.Parallel()
	_, err := catalog(t, simpleJob("b"), simpleJob("a")).Build(t.Context(), "c", nil)
	if !errors.Is(err, operator.ErrUnknownEntrypoint) || !strings.Contains(err.Error(), `"c"; known are: a, b`) {
		t.Errorf("got %v", err)
	}
}

func TestBuilderThatPanicsGivesItsStack(t *testing.T) {
	t.Parallel()
	job := flow.Define("bad", func(g *flow.Graph, _ struct{}) error { return explode() })
	_, err := catalog(t, job).Build(t.Context(), "bad", nil)
	if err == nil || !strings.Contains(err.Error(), `build job "bad": builder panicked: panic: boom`) || !strings.Contains(err.Error(), "flow_test.explode") {
		t.Errorf("got %v", err)
	}
}

//go:noinline
func explode() error { panic("boom") }

func TestBuilderThatBlocksIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		job := flow.Define("slow", func(g *flow.Graph, _ struct{}) error { <-release; return nil })
		start := time.Now()
		if _, err := catalog(t, job).Build(t.Context(), "slow", nil); err == nil || !strings.Contains(err.Error(), "did not return within 30s") || time.Since(start) != flow.BuildTimeout {
			t.Errorf("without a deadline: %v after %v", err, time.Since(start))
		}
		ended, cancelEnded := context.WithCancelCause(t.Context())
		cancelEnded(errors.New("shutting down"))
		if _, err := catalog(t, job).Build(ended, "slow", nil); err == nil || !strings.Contains(err.Error(), "shutting down") {
			t.Errorf("after the end: %v", err)
		}
		close(release)
	})
}

// A builder that never returns costs one goroutine, and not one for every submission.
func TestBuilderThatWasGivenUpIsNotRunAgainUntilItReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, runs := make(chan struct{}), 0
		slow := flow.Define("slow", func(g *flow.Graph, _ struct{}) error { runs++; <-release; return nil })
		c := catalog(t, slow, simpleJob("quick"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Build(ctx, "slow", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a deadline: %v", err)
		}
		if _, err := c.Build(t.Context(), "slow", nil); err == nil || !strings.Contains(err.Error(), "has not returned yet") {
			t.Errorf("while it blocks: %v", err)
		}
		if _, err := c.Build(t.Context(), "quick", nil); err != nil {
			t.Errorf("another job: %v", err)
		}
		close(release)
		synctest.Wait()
		if _, err := c.Build(t.Context(), "slow", nil); err == nil || !strings.Contains(err.Error(), "no operators") || runs != 2 {
			t.Errorf("after it returned: %v, run %d times", err, runs)
		}
	})
}

// recordingT is a test that may fail.
type recordingT struct{ failed string }

func (r *recordingT) Helper() {}
func (r *recordingT) Fatalf(format string, args ...any) {
	r.failed = format
}

func TestCheckFindsBuildersThatAreNotDeterministic(t *testing.T) {
	t.Parallel()
	flow.Check(t, simpleJob("a"), nil)
	n := 0
	job := flow.Define("counting", func(g *flow.Graph, _ struct{}) error {
		n++
		flow.To(flow.From(g, "in"+strings.Repeat("x", n), numbers(1)), "out", flow.Discard[int]())
		return nil
	})
	var r recordingT
	if flow.Check(&r, job, nil); !strings.Contains(r.failed, "not deterministic") {
		t.Errorf("got %q", r.failed)
	}
	r = recordingT{}
	if flow.Check(&r, job, map[string]string{"x": "y"}); !strings.Contains(r.failed, "build %d") {
		t.Errorf("got %q", r.failed)
	}
}
