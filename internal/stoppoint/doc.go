// Package stoppoint lets a process kill itself at a named point of a protocol, so
// that tests of real processes can crash it exactly there.
//
// It owns [At] and [Arm]. It must not know the protocols. Without the build tag
// stoppoints both do nothing and no released binary can be stopped so.
//
// A test starts a binary built with the tag, with WEIR_STOPPOINT=pending or
// WEIR_STOPPOINT=linked:3 (the third time the point is reached) in its environment;
// the main of that binary hands the value to Arm. The points are listed in points.go.
//
// No goroutines; counting is one atomic. Read points.go.
package stoppoint
