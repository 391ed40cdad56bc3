//go:build !stoppoints

package stoppoint

import "testing"

func TestPointsStopNothingWithoutTheTag(t *testing.T) {
	if err := Arm("pending"); err != nil {
		t.Fatal(err)
	}
	At(Pending) // a kill would end the test binary
	if Enabled {
		t.Error("points are enabled")
	}
}
