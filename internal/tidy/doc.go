// Package tidy holds the house to its own rules, as a test.
//
// It owns the floor plan (floors.go), the external modules each package may use
// (external.go), the list of pure packages (pure.go), and the rules of style that a
// program can check. It must not know what any package does, and imports none.
//
// Its tests parse every Go file of the module, whatever its build tags, and read
// every other text file; that needs no build and takes under a second. A rule is a
// function from the [Tree] to complaints; each is also run over a planted violation,
// which it must find. When a test fails, its message says what to change, or which
// table here to change if the plan itself has moved: then say why in docs/decisions.
//
// What exceeds a size limit stands in testdata/ratchet.txt with its exact size. The
// test fails when one grows, and also when one shrinks and the line was not lowered
// or removed: the list gets shorter, never longer.
//
// No goroutines, no locks. Read floors.go, then rules.go.
package tidy
