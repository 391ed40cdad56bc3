package inbox

import (
	"slices"
	"testing"
)

func TestLettersAreTakenInOrderUntilClosed(t *testing.T) {
	t.Parallel()
	b := New[int]()
	b.Post(1)
	b.Post(2)
	<-b.Wake()
	if got := b.Take(); !slices.Equal(got, []int{1, 2}) {
		t.Fatalf("took %v", got)
	}
	select {
	case <-b.Wake():
		t.Fatal("woken for nothing")
	default:
	}
	b.Post(3)
	if rest := b.Close(); !slices.Equal(rest, []int{3}) {
		t.Errorf("close left %v", rest)
	}
	if b.Post(4) || len(b.Take()) != 0 {
		t.Error("a closed inbox took a letter")
	}
}
