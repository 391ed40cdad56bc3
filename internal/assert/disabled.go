//go:build !invariants

package assert

// Enabled says whether costly checks run.
const Enabled = false
