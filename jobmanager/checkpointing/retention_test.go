package checkpointing

import "testing"

// Behaviour §7: what becomes of checkpoints at a job's end. A job that is suspended has not
// ended.
func TestRetentionAtTheEnd(t *testing.T) {
	t.Parallel()
	outcomes := []Outcome{JobSuspended, JobFinished, JobCanceled, JobFailed}
	for r, want := range map[Retention][]bool{
		RetainOnCancellation: {false, false, false, false},
		DeleteOnCancellation: {false, true, true, false},
		NoExternalized:       {false, true, true, true},
	} {
		for i, o := range outcomes {
			if got := r.Deletes(o); got != want[i] {
				t.Errorf("%s, outcome %d: deletes is %t", r, o, got)
			}
		}
		if again, err := parseRetention(r.String()); err != nil || again != r {
			t.Errorf("%s: %v, %v", r, again, err)
		}
	}
}
