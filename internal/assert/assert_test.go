package assert_test

import (
	"testing"

	"github.com/weirflow/weir/internal/assert"
)

type named int64

func TestFalseConditionPanicsWithFormattedFailure(t *testing.T) {
	t.Parallel()
	defer func() {
		f, ok := recover().(*assert.Failure)
		if !ok {
			t.Fatal("want a panic with *assert.Failure")
		}
		const want = "assertion failed: 3 of 400 buffers, true \"pool\" <nil> []int"
		if f.Error() != want {
			t.Errorf("got  %s\nwant %s", f, want)
		}
	}()
	assert.That(false, "%d of %d buffers, %v %q %v %v", named(3), uint16(400), true, "pool", nil, []int{1})
}

func TestMessageWithoutArgumentsIsTakenAsItIs(t *testing.T) {
	t.Parallel()
	defer func() {
		f, ok := recover().(*assert.Failure)
		if !ok || f.Message != "100% sure" {
			t.Errorf("got %v", f)
		}
	}()
	assert.That(false, "100% sure")
}

func TestTrueConditionAllocatesNothing(t *testing.T) {
	n, s := named(1<<40), "a string made at run time"
	got := testing.AllocsPerRun(100, func() {
		n++
		assert.That(n > 0, "%d of %s, %v", n, s[1:], &n)
	})
	if got != 0 {
		t.Errorf("%v allocations, want 0", got)
	}
}
