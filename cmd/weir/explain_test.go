package main

import (
	"math"
	"strconv"
	"strings"
	"testing"
)

// The waits that explain names are the duration of a checkpoint under back pressure, and
// say where it comes from.
func TestExplainAccountsForABackPressuredCheckpoint(t *testing.T) {
	t.Parallel()
	c := newCluster(t, built(t, weirBinary), 2)
	job := c.json("submit", "checkpoint-demo", "--detach", "--name", "slow", "--param", "rate=2000", "--param", "sleep=2ms", "--param", "parallelism=2",
		"--checkpoint-interval", "1s")[0]["job"].(string)
	c.awaitCheckpoint(job, 4)
	check := func(e map[string]any) {
		t.Helper()
		took, sum, unnamed := e["duration_ms"].(float64), 0.0, 0.0
		kinds := map[string]float64{}
		for _, w := range e["waits"].([]any) {
			w := w.(map[string]any)
			ms := w["took_ms"].(float64)
			sum += ms
			kinds[w["kind"].(string)] += ms
			if kind := w["kind"]; kind == "messages" || kind == "ending" {
				unnamed += ms
			}
			if kind := w["kind"]; kind == "queue" || kind == "alignment" {
				if at, _ := w["at"].(string); !strings.HasPrefix(at, "count") {
					t.Errorf("barriers waited at %q", at)
				}
				if from, _ := w["from"].(string); !strings.HasPrefix(from, "datagen[") || w["queued_bytes"].(float64) <= 0 {
					t.Errorf("a barrier came from %q behind %v bytes", from, w["queued_bytes"])
				}
			}
		}
		if math.Abs(sum-took) > 0.05*took || unnamed > 0.05*took+20 || e["whole"] != true {
			t.Errorf("waits of %.1f ms, of which %.1f ms in nobody's hands, are not the %.1f ms it took: %v", sum, unnamed, took, e)
		}
		if way := kinds["busy"] + kinds["queue"] + kinds["alignment"]; way < took/2 {
			t.Errorf("the way of the barriers took %.1f of %.1f ms: %v", way, took, e)
		}
		if advice, _ := e["advice"].(string); !strings.Contains(advice, "unaligned.enabled=true") {
			t.Errorf("advice: %s", advice)
		}
	}
	// The slowest of all may be one that is pending.
	slowest, took := 0.0, 0.0
	for _, l := range c.json("checkpoints", job) {
		if ms := l["duration_ms"].(float64); l["status"] == "COMPLETED" && ms > took {
			slowest, took = l["checkpoint"].(float64), ms
		}
	}
	explain := func() map[string]any { return c.json("checkpoint", "explain", job, strconv.Itoa(int(slowest)))[0] }
	check(explain())
	if e := c.json("checkpoint", "explain", job)[0]; e["duration_ms"].(float64) < took {
		t.Errorf("%v is not the slowest: %v took %v ms", e, slowest, took)
	}
	if l := c.json("checkpoint", "explain", "slow", "4"); l[0]["checkpoint"] != 4.0 {
		t.Errorf("checkpoint %v, want 4", l[0]["checkpoint"])
	}
	if s := c.json("checkpoints", "slow", "--summary")[0]; s["completed"].(float64) < 4 {
		t.Errorf("summary %v", s)
	}
	hasKeys(t, "one checkpoint", c.json("checkpoints", "slow", "4")[0], "steps_ms", "vertices", "subtasks", "new_bytes", "late")
	_, stderr, err := c.weir("checkpoint", "explain", "slow", "4711")
	if err == nil || !strings.Contains(stderr, "is not known") || !strings.Contains(stderr, "hint:") {
		t.Errorf("an unknown checkpoint: %v\n%s", err, stderr)
	}
	// What was known stays when the job has ended.
	c.json("cancel", "slow")
	check(explain())
}
