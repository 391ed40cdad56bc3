package group_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir/internal/group"
)

func TestTimerFiresOnceAtItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group.New(t.Context(), "g")
		start, fired := time.Now(), make(chan time.Duration, 2)
		g.AfterFunc("tick", time.Minute, func(context.Context) { fired <- time.Since(start) })
		if at := <-fired; at != time.Minute {
			t.Errorf("fired after %v", at)
		}
		time.Sleep(time.Hour)
		if len(fired) != 0 {
			t.Error("fired twice")
		}
		if err := g.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestStoppedTimerDoesNotFireAndResetOneFiresAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group.New(t.Context(), "g")
		start, fired := time.Now(), make(chan time.Duration, 2)
		timer := g.AfterFunc("tick", time.Minute, func(context.Context) { fired <- time.Since(start) })
		if !timer.Stop() || timer.Stop() {
			t.Error("want the first Stop to be in time and the second not")
		}
		time.Sleep(time.Hour)
		if len(fired) != 0 {
			t.Error("fired after Stop")
		}
		if timer.Reset(time.Second) {
			t.Error("Reset says that a stopped timer was armed")
		}
		if at := <-fired; at != time.Hour+time.Second {
			t.Errorf("fired after %v", at)
		}
		if err := g.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestStopOfTheGroupStopsTimersForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group.New(t.Context(), "g")
		fired := false
		fire := func(context.Context) { fired = true }
		armed := g.AfterFunc("armed", time.Minute, fire)
		if err := g.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		late := g.AfterFunc("late", 0, fire)
		armed.Reset(0)
		late.Reset(0)
		time.Sleep(time.Hour)
		if fired {
			t.Error("fired after Stop")
		}
	})
}

func TestStopWaitsForATimersFunctionAndCancelsItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group.New(t.Context(), "g")
		ended := false
		g.AfterFunc("slow", time.Second, func(ctx context.Context) {
			<-ctx.Done()
			time.Sleep(time.Minute)
			ended = true
		})
		time.Sleep(2 * time.Second)
		if live := g.Live(); len(live) != 1 || live[0] != "slow" {
			t.Errorf("live: %v", live)
		}
		if err := g.Stop(t.Context()); err != nil || !ended {
			t.Errorf("Stop: %v, ended: %v", err, ended)
		}
	})
}

func TestPanicOfATimersFunctionEndsTheGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group.New(t.Context(), "g")
		g.AfterFunc("bad", time.Second, func(context.Context) { panic("boom") })
		<-g.Context().Done()
		var p *group.PanicError
		if err := g.Wait(); !errors.As(err, &p) {
			t.Errorf("Wait: %v", err)
		}
	})
}

func TestAfterDoneRunsWhenTheContextEndsUnlessCalledOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group.New(t.Context(), "g")
		ctx, cancel := context.WithCancel(t.Context())
		var ran []string
		g.AfterDone(ctx, "first", func() { ran = append(ran, "first") })
		stop := g.AfterDone(ctx, "second", func() { ran = append(ran, "second") })
		if !stop() {
			t.Error("want the call off to be in time")
		}
		cancel()
		synctest.Wait()
		if len(ran) != 1 || ran[0] != "first" {
			t.Errorf("ran %v", ran)
		}
		if err := g.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		after, cancelAfter := context.WithCancel(context.Background())
		g.AfterDone(after, "late", func() { ran = append(ran, "late") })
		cancelAfter()
		synctest.Wait()
		if len(ran) != 1 {
			t.Errorf("ran %v on a stopped group", ran)
		}
	})
}
