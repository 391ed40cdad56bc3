package main

import "testing"

func TestWorldTakesCheckpoints(t *testing.T) {
	t.Parallel()
	w := newWorld(8)
	for range 5 {
		w.checkpoint()
	}
	if w.complete != 8 || len(w.attempts) != 8 || w.trigger != 2 {
		t.Errorf("%d completed, %d attempts, %d triggers", w.complete, len(w.attempts), w.trigger)
	}
}
