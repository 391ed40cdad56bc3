package checkpointing

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirflow/weir"
)

// TestFailures runs the cases of the failure manager at the counter. A line is
// "ID [KIND] REASON [by task]" or "ID succeeded", followed by what becomes of the job:
// "-", "fail job" or "fail task".
func TestFailures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		tolerable int
		lines     string
	}{
		{"O-FM-01_none_tolerated", 0, `
			1 CHECKPOINT_EXPIRED: fail job, 0 counted`},
		{"O-FM-02_once_for_each_id", 2, `
			1 CHECKPOINT_DECLINED by task: -, 1 counted
			2 CHECKPOINT_DECLINED by task: -, 2 counted
			2 CHECKPOINT_DECLINED by task: -, 2 counted
			3 CHECKPOINT_DECLINED by task: fail task, 0 counted
			3 CHECKPOINT_DECLINED by task: -, 1 counted`},
		{"O-FM-03_success_resets", 1, `
			1 CHECKPOINT_EXPIRED: -, 1 counted
			2 CHECKPOINT_SUBSUMED: -, 1 counted
			3 CHECKPOINT_DECLINED_TASK_CLOSING by task: -, 1 counted
			4 succeeded: -, 0 counted
			5 CHECKPOINT_EXPIRED: -, 1 counted`},
		{"O-FM-04_older_than_the_last_success", 0, `
			7 succeeded: -, 0 counted
			6 CHECKPOINT_EXPIRED: -, 0 counted
			5 succeeded: -, 0 counted
			8 CHECKPOINT_EXPIRED: fail job, 0 counted`},
		{"O-FM-05_savepoints", 0, `
			1 savepoint CHECKPOINT_EXPIRED: -, 0 counted
			2 savepoint CHECKPOINT_ASYNC_EXCEPTION by task: fail task, 0 counted
			3 savepoint IO_EXCEPTION by task: -, 0 counted`},
		{"O-FM-06_savepoint_of_a_stop", 1000, `
			1 suspend-savepoint CHECKPOINT_DECLINED_TASK_CLOSING by task: fail task, 0 counted
			2 suspend-savepoint CHECKPOINT_EXPIRED: -, 0 counted
			3 suspend-savepoint NOT_ALL_REQUIRED_TASKS_RUNNING: -, 0 counted`},
		{"without_id_every_time", 1, `
			0 IO_EXCEPTION: -, 1 counted
			0 IO_EXCEPTION: fail job, 0 counted`},
		{"unlimited_only_alarms", Unlimited, `
			1 CHECKPOINT_EXPIRED: -, 1 counted
			2 CHECKPOINT_EXPIRED: -, 2 counted`},
		{"io_of_a_task_is_nobodys_fault", 0, `
			1 IO_EXCEPTION by task: fail job, 0 counted`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := failureCounter{tolerable: c.tolerable}
			for _, line := range strings.Split(strings.TrimSpace(c.lines), "\n") {
				what, want, _ := strings.Cut(strings.TrimSpace(line), ": ")
				if got := f.told(t, what); got != want {
					t.Errorf("%s: %s, want %s", what, got, want)
				}
			}
		})
	}
}

// told reads a line, tells the counter, and says what became of it.
func (f *failureCounter) told(t *testing.T, line string) string {
	t.Helper()
	line, byTask := strings.CutSuffix(line, " by task")
	words := strings.Fields(line)
	var x checkpointFailure
	if _, err := fmt.Sscan(words[0], &x.id); err != nil {
		t.Fatal(err)
	}
	last := words[len(words)-1]
	if last == "succeeded" {
		f.succeeded(x.id)
		return fmt.Sprintf("-, %d counted", f.failures)
	}
	for kind := weir.Checkpoint; kind <= weir.TerminateSavepoint; kind++ {
		if kind.String() == words[1] {
			x.kind = kind
		}
	}
	x.reason = reason(t, last)
	if byTask {
		x.attempt = weir.AttemptID{Job: testJob, N: 1}
	}
	_, fail := f.failed(x)
	switch {
	case fail == nil:
		return fmt.Sprintf("-, %d counted", f.failures)
	case fail.Attempt == x.attempt && byTask:
		return fmt.Sprintf("fail task, %d counted", f.failures)
	default:
		return fmt.Sprintf("fail job, %d counted", f.failures)
	}
}

// Behaviour §9: five reasons count, no other does.
func TestReasonsThatCount(t *testing.T) {
	t.Parallel()
	t.Run("O-FM-07_each_alone", func(t *testing.T) {
		t.Parallel()
		count := map[weir.FailureReason]bool{
			weir.IOException: true, weir.CheckpointAsyncException: true, weir.CheckpointDeclined: true,
			weir.CheckpointExpired: true, weir.FinalizeCheckpointFailure: true,
		}
		for r := weir.ReasonNone; r <= weir.TriggerCheckpointFailure; r++ {
			for _, attempt := range []weir.AttemptID{{}, {Job: testJob, N: 1}} {
				f := failureCounter{}
				alarm, fail := f.failed(checkpointFailure{id: 1, attempt: attempt, reason: r})
				if (fail != nil) != count[r] || (len(alarm) == 1) != count[r] {
					t.Errorf("%s by %s: fails %t, alarms %d", r, attempt, fail != nil, len(alarm))
				}
			}
		}
	})
}

func TestCountedIDsAreBounded(t *testing.T) {
	t.Parallel()
	f := failureCounter{tolerable: Unlimited}
	for id := range weir.CheckpointID(10 * maxCountedIDs) {
		f.failed(checkpointFailure{id: id + 1, reason: weir.CheckpointExpired})
	}
	if f.failures != 10*maxCountedIDs || len(f.counted) != maxCountedIDs {
		t.Errorf("%d failures, %d ids", f.failures, len(f.counted))
	}
}
