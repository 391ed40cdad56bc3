package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weirflow/weir/daemon"
	"github.com/weirflow/weir/internal/assert"
)

// actAsWeir in the environment makes the test binary a weir binary that carries the
// jobs of badjobs_test.go.
const actAsWeir = "WEIR_TEST_ACT_AS_WEIR"

// scratch holds the binaries; it is removed at the end.
var scratch string

func TestMain(m *testing.M) {
	if os.Getenv(actAsWeir) != "" {
		daemon.Main(badJobs()...)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "weir-test-binaries-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	scratch = dir
	return m.Run()
}

// weirBinary is what users get; stoppableBinary can be told to kill itself at a point.
var (
	weirBinary      = sync.OnceValues(func() (string, error) { return build("weir", "") })
	stoppableBinary = sync.OnceValues(func() (string, error) { return build("weir-stoppable", "stoppoints") })
)

// build builds this package, with assertions if this test has them.
func build(name, tags string) (string, error) {
	if assert.Enabled {
		tags = strings.Trim(tags+",invariants", ",")
	}
	path := filepath.Join(scratch, name)
	cmd := exec.Command("go", "build", "-tags", tags, "-o", path, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return path, nil
}

func built(t *testing.T, of func() (string, error)) string {
	t.Helper()
	path, err := of()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
