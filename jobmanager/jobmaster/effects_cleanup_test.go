package jobmaster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirflow/weir/jobmanager/ha"
)

func TestLeftoversAreTriedAgainWithBackOff(t *testing.T) {
	t.Parallel()
	var f leftovers
	refuses := map[string]bool{}
	var tried []string
	add := func(what string) (arm time.Duration) {
		t.Helper()
		arm, _, dropped := f.add(leftover{what: what, act: func(context.Context) error {
			tried = append(tried, what)
			if refuses[what] {
				return errors.New("refused")
			}
			return nil
		}})
		if dropped {
			t.Fatalf("%s was dropped", what)
		}
		return arm
	}
	pass := func(wantNext time.Duration, wantLeft int, wantTried ...string) {
		t.Helper()
		tried = nil
		next, left, err := f.pass(t.Context())
		if err != nil || next != wantNext || left != wantLeft || !slices.Equal(tried, wantTried) {
			t.Errorf("next pass after %s, %d left, tried %q, %v; want %s, %d, %q", next, left, tried, err, wantNext, wantLeft, wantTried)
		}
	}
	for _, what := range []string{"a", "b", "c", "d", "e"} {
		refuses[what] = true
		if arm := add(what); (arm > 0) != (what == "a") {
			t.Errorf("%s arms a pass after %s", what, arm)
		}
	}
	// A store that refuses gets a few requests a pass, ever more rarely, and each has its turn.
	pass(2*time.Second, 5, "a", "b", "c")
	pass(4*time.Second, 5, "d", "e", "a")
	for range 20 {
		tried = nil
		if next, _, _ := f.pass(t.Context()); next > lastRetry {
			t.Fatalf("next pass after %s", next)
		}
	}
	// One that still fails does not keep the others from being deleted.
	refuses = map[string]bool{"c": true}
	next, left, err := f.pass(t.Context())
	if err != nil || next != firstRetry || left != 1 {
		t.Errorf("next pass after %s, %d left, %v", next, left, err)
	}
	refuses = nil
	pass(0, 0, "c")
	if _, some := f.any(); some {
		t.Error("there are some")
	}
	if arm := add("f"); arm != firstRetry {
		t.Errorf("a new one arms a pass after %s", arm)
	}
}

func TestLeftoversOfAnOvertakenLeaderAreForgotten(t *testing.T) {
	t.Parallel()
	var f leftovers
	for i := range 3 {
		f.add(leftover{what: fmt.Sprint(i), act: func(context.Context) error { return fmt.Errorf("remove: %w", ha.ErrNotLeader) }})
	}
	if _, _, err := f.pass(t.Context()); !errors.Is(err, ha.ErrNotLeader) {
		t.Errorf("pass: %v", err)
	}
	if n, _ := f.any(); n != 0 {
		t.Errorf("%d left", n)
	}
}

func TestLeftoversAreBounded(t *testing.T) {
	t.Parallel()
	var f leftovers
	for i := range maxLeftovers + 2 {
		_, n, dropped := f.add(leftover{})
		if dropped != (i >= maxLeftovers) || n > maxLeftovers {
			t.Fatalf("number %d: %d are kept, dropped %t", i, n, dropped)
		}
	}
}
