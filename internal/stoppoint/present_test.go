//go:build stoppoints

package stoppoint

import "testing"

func TestPointStopsAtTheChosenTime(t *testing.T) {
	killed, real := 0, kill
	kill = func() { killed++ }
	t.Cleanup(func() { kill = real; _ = Arm("") })
	for spec, times := range map[string]int{"pending": 1, "pending:1": 1, "pending:3": 3} {
		if err := Arm(spec); err != nil {
			t.Fatal(err)
		}
		killed = 0
		At(Linked)
		for i := 1; i <= 5; i++ {
			At(Pending)
			if want := min(1, i/times); killed != want {
				t.Errorf("%s: after %d times killed %d times, want %d", spec, i, killed, want)
			}
		}
	}
	for _, bad := range []string{"nowhere", "pending:", "pending:0", "linked:x", ":2"} {
		if Arm(bad) == nil {
			t.Errorf("Arm(%q) is accepted", bad)
		}
	}
}
