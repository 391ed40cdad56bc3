// Package assert states what only a bug of ours can break.
//
// It owns the form of such statements and the panic that a false one ends in; it
// must not know anybody's types. Data from outside is never asserted: it is
// validated once, where it comes in, and answered by an error.
//
// [That] is always on and costs a comparison. What costs more stands behind
// [Enabled], which the build tag "invariants" sets:
//
//	if assert.Enabled {
//		assert.That(pool.count() == want, "pool holds %d of %d", pool.count(), want)
//	}
//
// Invariants:
//
//  1. A true condition allocates nothing, whatever the arguments.
//  2. A false one panics with a [*Failure], so that a recovering owner can tell a
//     bug of ours from a panic of user code.
//
// No goroutines, no locks. Read assert.go.
package assert
