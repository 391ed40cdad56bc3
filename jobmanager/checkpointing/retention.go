package checkpointing

import (
	"fmt"
	"strings"
)

// Retention says what becomes of a job's checkpoints when it ends (behaviour §7).
// Savepoints always stay.
type Retention uint8

// Retention policies, by the names of their values.
const (
	RetainOnCancellation Retention = iota // they stay, however the job ends
	DeleteOnCancellation                  // they stay only if the job failed
	NoExternalized                        // none stays
)

var retentionNames = [...]string{"RETAIN_ON_CANCELLATION", "DELETE_ON_CANCELLATION", "NO_EXTERNALIZED_CHECKPOINTS"}

func (r Retention) String() string {
	return retentionNames[min(int(r), len(retentionNames)-1)]
}

func parseRetention(value string) (Retention, error) {
	for i, name := range retentionNames {
		if strings.EqualFold(value, name) {
			return Retention(i), nil
		}
	}
	return 0, fmt.Errorf("%q is not one of %s", value, strings.Join(retentionNames[:], ", "))
}

// Outcome is how a job ended.
type Outcome uint8

// Outcomes of jobs.
const (
	JobSuspended Outcome = iota // it has not: another JobManager goes on with it
	JobFinished
	JobCanceled
	JobFailed
)

// Deletes says whether the checkpoints of a job that ended so are deleted, which is
// done once its end is recorded.
func (r Retention) Deletes(o Outcome) bool {
	switch o {
	case JobFinished, JobCanceled:
		return r != RetainOnCancellation
	case JobFailed:
		return r == NoExternalized
	default:
		return false
	}
}
