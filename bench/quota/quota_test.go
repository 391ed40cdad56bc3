package quota_test

import (
	"testing"

	"github.com/weirflow/weir/bench/quota"
)

// Run returns once all but what two counters may keep to themselves has been counted, and
// not before.
func TestRunReturnsWhenItsRecordsHaveArrived(t *testing.T) {
	t.Parallel()
	const counters, records = 2, 10 * quota.Report
	q := quota.New(counters)
	woken := 0
	q.SetWake(func() {
		woken++
		if got, want := q.Allowed(), int64(woken*records); got != want {
			t.Errorf("%d records are allowed, want %d", got, want)
		}
		for range records / quota.Report {
			q.Counted()
		}
	})
	if !q.Opened() {
		t.Error("the source has set its wake")
	}
	for range 3 {
		q.Run(records)
	}
	if woken != 3 {
		t.Errorf("woken %d times, want 3", woken)
	}
}
