//go:build stoppoints

package stoppoint

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// Enabled says whether points stop the process.
const Enabled = true

type target struct {
	point Point
	left  atomic.Int64 // times the point is still passed, the fatal one included
}

var armed atomic.Pointer[target]

// kill ends the process as kill -9 does: nothing is flushed, nobody is told.
var kill = func() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // until the signal is delivered
}

// Arm chooses the point: "name", or "name:n" for the n-th time it is reached. The
// empty text chooses none.
func Arm(spec string) error {
	if spec == "" {
		armed.Store(nil)
		return nil
	}
	name, times, counted := strings.Cut(spec, ":")
	t := &target{point: Point(name)}
	t.left.Store(1)
	if counted {
		n, err := strconv.ParseInt(times, 10, 32)
		if err != nil || n < 1 {
			return fmt.Errorf("%s: %q is not name or name:n", Variable, spec)
		}
		t.left.Store(n)
	}
	if t.point != Pending && t.point != Linked {
		return fmt.Errorf("%s: there is no point %q; known are %q and %q", Variable, name, Pending, Linked)
	}
	armed.Store(t)
	return nil
}

// At is the point: the process ends here, if this is the time that was chosen.
func At(p Point) {
	if t := armed.Load(); t != nil && t.point == p && t.left.Add(-1) == 0 {
		kill()
	}
}
