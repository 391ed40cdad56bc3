package group_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir/internal/group"
)

func untilDone(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// must is for starts that cannot be refused.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestFirstErrorIsKeptAndCancelsTheOthersWithItAsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group.New(t.Context(), "g")
		var cause error
		must(t, g.Go("other", func(ctx context.Context) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return errors.New("a later error")
		}))
		must(t, g.Go("failing", func(context.Context) error { return io.ErrUnexpectedEOF }))
		if err := g.Wait(); err != io.ErrUnexpectedEOF {
			t.Errorf("Wait: %v", err)
		}
		if cause != io.ErrUnexpectedEOF {
			t.Errorf("cause %v", cause)
		}
		if err := g.Go("late", untilDone); err != group.ErrStopped {
			t.Errorf("Go after an error: %v", err)
		}
	})
}

func TestStopIsNoErrorAndRefusesWhatComesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group.New(t.Context(), "g")
		must(t, g.Go("canceled", untilDone))
		must(t, g.Go("cause", func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}))
		for range 2 {
			if err := g.Stop(t.Context()); err != nil {
				t.Errorf("Stop: %v", err)
			}
		}
		if err := g.Go("late", untilDone); err != group.ErrStopped {
			t.Errorf("Go after Stop: %v", err)
		}
		if !errors.Is(context.Cause(g.Context()), group.ErrStopped) {
			t.Errorf("cause %v", context.Cause(g.Context()))
		}
	})
}

func TestStopAtItsDeadlineNamesWhatStillRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group.New(t.Context(), "tm")
		release := make(chan struct{})
		deaf := func(context.Context) error { <-release; return nil }
		must(t, g.Go("b", deaf))
		must(t, g.Go("a", deaf))
		must(t, g.Go("obedient", untilDone))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := g.Stop(ctx)
		var stuck *group.StuckError
		if !errors.As(err, &stuck) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Stop: %v", err)
		}
		if got := err.Error(); got != "group tm: still running: a, b: context deadline exceeded" {
			t.Error(got)
		}
		close(release)
		if err := g.Stop(t.Context()); err != nil {
			t.Errorf("second Stop: %v", err)
		}
	})
}

func TestPanicIsTheGoroutinesErrorWithItsStack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group.New(t.Context(), "g")
		must(t, g.Go("panicking", func(context.Context) error { panic(io.ErrShortWrite) }))
		err := g.Wait()
		var p *group.PanicError
		if !errors.As(err, &p) || !errors.Is(err, io.ErrShortWrite) {
			t.Fatalf("Wait: %v", err)
		}
		if !strings.Contains(p.Stack, "TestPanicIsTheGoroutinesErrorWithItsStack") {
			t.Errorf("stack does not show the panicking function:\n%s", p.Stack)
		}
	})
}

func TestGoexitEndsTheGroupInsteadOfHangingIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group.New(t.Context(), "g")
		must(t, g.Go("exiting", func(context.Context) error { runtime.Goexit(); return nil }))
		if err := g.Wait(); err != group.ErrExited {
			t.Errorf("Wait: %v", err)
		}
		h := group.New(t.Context(), "h")
		var got error
		must(t, h.GoThen("exiting", func(context.Context) error { runtime.Goexit(); return nil }, func(err error) { got = err }))
		if err := h.Wait(); err != nil || got != group.ErrExited {
			t.Errorf("Wait: %v, done: %v", err, got)
		}
	})
}

func TestGoThenGivesFailuresToItsOwnerAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group.New(t.Context(), "g")
		results := make(chan error, 2)
		done := func(err error) { results <- err }
		must(t, g.GoThen("failing", func(context.Context) error { return io.EOF }, done))
		if err := <-results; err != io.EOF {
			t.Errorf("done: %v", err)
		}
		must(t, g.GoThen("panicking", func(context.Context) error { panic("boom") }, done))
		var p *group.PanicError
		if err := <-results; !errors.As(err, &p) || p.Value != "boom" {
			t.Errorf("done: %v", err)
		}
		if err := g.Wait(); err != nil {
			t.Errorf("Wait: %v", err)
		}
		must(t, g.GoThen("careless", func(context.Context) error { return nil }, func(error) { panic("in done") }))
		if err := g.Wait(); !errors.As(err, &p) || p.Value != "in done" {
			t.Errorf("Wait: %v", err)
		}
	})
}

func TestParentCancellationIsNoErrorAndRefusesNewGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		g := group.New(ctx, "g")
		must(t, g.Go("child", untilDone))
		cancel(io.EOF)
		if err := g.Wait(); err != nil {
			t.Errorf("Wait: %v", err)
		}
		if err := g.Go("late", untilDone); err != group.ErrStopped {
			t.Errorf("Go: %v", err)
		}
	})
}

func TestWaitIncludesGoroutinesStartedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group.New(t.Context(), "g")
		var ended atomic.Int32
		must(t, g.Go("first", func(context.Context) error {
			return g.Go("second", func(context.Context) error {
				time.Sleep(time.Hour)
				ended.Add(1)
				return nil
			})
		}))
		if err := g.Wait(); err != nil || ended.Load() != 1 {
			t.Errorf("Wait: %v, %d ended", err, ended.Load())
		}
		must(t, g.Go("third", func(context.Context) error { ended.Add(1); return nil }))
		if err := g.Wait(); err != nil || ended.Load() != 2 {
			t.Errorf("second Wait: %v, %d ended", err, ended.Load())
		}
	})
}

func TestGoroutinesCarryProfilingLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group.New(t.Context(), "job/7")
		labels := make(map[string]string)
		must(t, g.Go("task/3", func(ctx context.Context) error {
			pprof.ForLabels(ctx, func(k, v string) bool { labels[k] = v; return true })
			return nil
		}))
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		if labels["group"] != "job/7" || labels["goroutine"] != "task/3" {
			t.Errorf("labels %v", labels)
		}
	})
}
