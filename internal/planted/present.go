//go:build planted

package planted

import "sync/atomic"

// Enabled says whether bugs can be chosen.
const Enabled = true

var chosen atomic.Value // of Bug

// Is says whether this bug was chosen.
func Is(b Bug) bool {
	now, _ := chosen.Load().(Bug)
	return now == b
}

// Choose puts this bug in, and takes out the one before; the empty name puts none in.
func Choose(b Bug) { chosen.Store(b) }
