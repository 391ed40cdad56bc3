//go:build !planted

package planted

// Enabled says whether bugs can be chosen.
const Enabled = false

// Is says whether this bug was chosen.
func Is(Bug) bool { return false }

// Choose does nothing without the build tag planted.
func Choose(Bug) {}
