//go:build planted

package sim_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/weirflow/weir/internal/planted"
)

// TestPlanted puts each bug in, one after the other, and lives seeds until one of
// them finds it. A bug may bring the process down, so each has a process of its own.
func TestPlanted(t *testing.T) {
	if bug := os.Getenv("WEIR_PLANTED"); bug != "" {
		planted.Choose(planted.Bug(bug))
		oneByOne = true
		TestSeeds(t)
		return
	}
	most := number(t, "WEIR_SEEDS", wholeSuite)
	for _, bug := range planted.Bugs {
		t.Run(string(bug), func(t *testing.T) {
			t.Parallel()
			if found := find(t, bug, most); found == "" {
				t.Errorf("%d seeds do not find it", most)
			} else {
				t.Log(found)
			}
		})
	}
}

// find lives the seeds, a few at a time, and returns what the first that fails says.
func find(t *testing.T, bug planted.Bug, most int) string {
	t.Helper()
	const some = 10
	for first := 1; first <= most; first += some {
		cmd := exec.Command(os.Args[0], "-test.run=^TestPlanted$", "-test.failfast")
		cmd.Env = append(os.Environ(), "WEIR_PLANTED="+string(bug), fmt.Sprintf("WEIR_SEEDS=%d", some), fmt.Sprintf("WEIR_FIRST=%d", first))
		out, err := cmd.CombinedOutput()
		if err == nil {
			continue
		}
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, "step ") && strings.Contains(line, "seed ") || strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") {
				return strings.TrimSpace(line)
			}
		}
		t.Fatalf("seeds from %d fail without saying why: %v\n%s", first, err, out)
	}
	return ""
}
