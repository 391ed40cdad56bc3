package failover

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobgraph"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestFixedDelayUsesUpItsAttempts(t *testing.T) {
	t.Parallel()
	s := New(Options{Kind: FixedDelay, Attempts: 2, Delay: 3 * time.Second})
	for i := range 2 {
		if d := s.Failed(start, &weir.Failure{}); !d.Restart || d.After != 3*time.Second {
			t.Fatalf("failure %d: %+v", i+1, d)
		}
	}
	if d := s.Failed(start.Add(time.Hour), &weir.Failure{}); d.Restart || d.Why == "" {
		t.Fatalf("third failure: %+v", d)
	}
	if got := s.String(); got != "fixed-delay: 3s, 2 of 2 used" {
		t.Errorf("%s", got)
	}
}

func TestUnlimitedAttemptsAreNeverUsedUp(t *testing.T) {
	t.Parallel()
	s := New(Defaults(true))
	for i := range 10_000 {
		if d := s.Failed(start, nil); !d.Restart || d.After != time.Second {
			t.Fatalf("failure %d: %+v", i, d)
		}
	}
}

func TestNoStrategyGivesUp(t *testing.T) {
	t.Parallel()
	if d := New(Defaults(false)).Failed(start, nil); d.Restart || d.Why == "" {
		t.Fatalf("%+v", d)
	}
}

func TestNoRetryIsNeverRetried(t *testing.T) {
	t.Parallel()
	for _, kind := range []Kind{None, FixedDelay, FailureRate} {
		o := Defaults(true)
		o.Kind = kind
		s := New(o)
		if d := s.Failed(start, &weir.Failure{NoRetry: true}); d.Restart {
			t.Errorf("%s restarts after a failure that restarting cannot help", s)
		}
	}
}

func TestFailureRateCountsWithinItsInterval(t *testing.T) {
	t.Parallel()
	s := New(Options{Kind: FailureRate, MaxFailures: 2, Interval: time.Minute, Delay: time.Second})
	for _, at := range []struct {
		after time.Duration
		want  bool
	}{
		{0, true}, {30 * time.Second, true}, {61 * time.Second, true},
		{91 * time.Second, true}, {121 * time.Second, false},
	} {
		if d := s.Failed(start.Add(at.after), nil); d.Restart != at.want {
			t.Fatalf("after %s: %+v", at.after, d)
		}
	}
}

func TestRegionsAreClosedUnderEdges(t *testing.T) {
	t.Parallel()
	g := &jobgraph.JobGraph{
		Vertices: make([]jobgraph.Vertex, 6),
		Edges:    []jobgraph.Edge{{From: 0, To: 2}, {From: 1, To: 3}, {From: 2, To: 4}, {From: 3, To: 4}},
	}
	if got := fmt.Sprint(Regions(g)); got != "[[0 1 2 3 4] [0 1 2 3 4] [0 1 2 3 4] [0 1 2 3 4] [0 1 2 3 4] [5]]" {
		t.Error(got)
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "vertices")
		g := &jobgraph.JobGraph{Vertices: make([]jobgraph.Vertex, n)}
		connected := make([][]bool, n) // the transitive closure, the slow way
		for v := range connected {
			connected[v] = make([]bool, n)
			connected[v][v] = true
		}
		for range rapid.IntRange(0, 12).Draw(t, "edges") {
			e := jobgraph.Edge{From: rapid.IntRange(0, n-1).Draw(t, "from"), To: rapid.IntRange(0, n-1).Draw(t, "to")}
			g.Edges = append(g.Edges, e)
			connected[e.From][e.To], connected[e.To][e.From] = true, true
		}
		for k := range n {
			for i := range n {
				for j := range n {
					connected[i][j] = connected[i][j] || connected[i][k] && connected[k][j]
				}
			}
		}
		for v, region := range Regions(g) {
			var want []int
			for w := range n {
				if connected[v][w] {
					want = append(want, w)
				}
			}
			if !reflect.DeepEqual(region, want) {
				t.Fatalf("region of %d is %v, want %v", v, region, want)
			}
		}
	})
}

func TestOptions(t *testing.T) {
	t.Parallel()
	o, err := ParseOptions(map[string]string{
		keyType: "fixed-delay", keyAttempts: "5", keyDelay: "2 s", keyRateDelay: "7s", "execution.checkpointing.interval": "x",
	}, false)
	if err != nil || o.Kind != FixedDelay || o.Attempts != 5 || o.Delay != 2*time.Second {
		t.Fatalf("%+v, %v", o, err)
	}
	again, err := ParseOptions(o.Settings(), false)
	if err != nil || again != o {
		t.Fatalf("settings %v give %+v, %v", o.Settings(), again, err)
	}
	rate, err := ParseOptions(map[string]string{keyType: "failure-rate", keyRateDelay: "10min", keyMaxFailures: "3"}, true)
	if err != nil || rate.Delay != 10*time.Minute || rate.MaxFailures != 3 {
		t.Fatalf("%+v, %v", rate, err)
	}
	if again, err := ParseOptions(rate.Settings(), true); err != nil || again != rate {
		t.Fatalf("settings %v give %+v, %v", rate.Settings(), again, err)
	}
}

func TestBadOptionsAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ key, value, want string }{
		{keyType, "sometimes", "is not one of none, fixed-delay, failure-rate"},
		{keyType, "exponential-delay", "not supported yet"},
		{later + "initial-backoff", "1 s", "not supported yet"},
		{keyAttempts, "-1", "is negative"},
		{keyAttempts, "many", "invalid syntax"},
		{keyDelay, "-1 s", "is not between 0 and 1 day"},
		{keyDelay, "soon", "invalid duration"},
		{keyMaxFailures, "0", "is not between 1 and"},
		{keyInterval, "0", "is not positive"},
		{prefix + "fixed-delay.atempts", "3", "unknown key"},
	} {
		_, err := ParseOptions(map[string]string{c.key: c.value}, true)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.key) {
			t.Errorf("%s=%s: %v, want %q", c.key, c.value, err, c.want)
		}
	}
	all := map[string]string{keyType: "x", keyAttempts: "x", prefix + "y": "1"}
	_, err := ParseOptions(all, true)
	for key := range maps.Keys(all) {
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%v does not name %s", err, key)
		}
	}
	if !errors.Is(err, ErrUnknownKey) {
		t.Errorf("%v is no ErrUnknownKey", err)
	}
}
