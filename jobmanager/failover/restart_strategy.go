package failover

import (
	"fmt"
	"time"

	"github.com/weirflow/weir"
)

// Decision is what a strategy says to a failure.
type Decision struct {
	Restart bool
	After   time.Duration // to wait before tasks are deployed again
	Why     string        // for people, if Restart is false
}

// RestartStrategy says whether a job is restarted after a failure. Only the job's
// loop calls it.
type RestartStrategy interface {
	fmt.Stringer
	// Failed counts a failure at this time and decides.
	Failed(now time.Time, cause *weir.Failure) Decision
}

// New returns the strategy of valid options.
func New(o Options) RestartStrategy { return nil }
