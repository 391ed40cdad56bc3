package daemon

import (
	"math"
	"strings"
	"testing"

	"github.com/weirflow/weir/rpc"
)

func TestMoreThanTheMachineHasIsRefused(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		slots  int
		memory int64
		says   string
	}{
		{512, 8 << 30, ""},
		{513, 1 << 20, "--slots is 513; with 2 CPUs at most 512 make sense"},
		{1, 8<<30 + 1<<20, "--memory is 8193 MiB; this machine, or what limits this process, has 8192 MiB"},
	} {
		err := checkMachine(x.slots, x.memory, 2, 8<<30)
		if x.says == "" && err != nil || x.says != "" && (err == nil || rpc.CodeOf(err) != rpc.CodeInvalidArgument || !strings.Contains(err.Error(), x.says)) {
			t.Errorf("%d slots, %d bytes: %v", x.slots, x.memory, err)
		}
	}
	if got := totalOf("MemFree: 1 kB\nMemTotal:       24684084 kB\nX: 2 kB\n"); got != 24684084<<10 {
		t.Errorf("total %d", got)
	}
	for _, text := range []string{"", "MemTotal: many kB\n", "MemTotal: 9223372036854775807 kB\n"} {
		if got := totalOf(text); got != math.MaxInt64 {
			t.Errorf("of %q: %d", text, got)
		}
	}
	if availableMemory() < 1<<20 || cpus() < 1 {
		t.Errorf("this machine has %d bytes and %d CPUs", availableMemory(), cpus())
	}
}
