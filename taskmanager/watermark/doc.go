// Package watermark combines the watermarks of a task's channels into one.
//
// It owns the arithmetic: the minimum over the channels that count, never going
// back; which channels are idle; whether all are. It must not know records,
// timers or gates.
//
// The owner makes a [Valve] for the channels of all gates, numbered from 0, calls
// [Valve.Watermark], [Valve.Idle], [Valve.Active] and [Valve.Ended] as the channels
// deliver these, and passes on what the returned [Change] says.
//
// Invariants:
//
//  1. What is passed on only grows.
//  2. It is the minimum over the channels that are active and have caught up with
//     what was passed on before; a channel that wakes behind it does not hold it
//     back, and does not count until it has caught up.
//  3. When the last active channel becomes idle, the largest watermark of any
//     channel is passed on first: nothing is left that could hold it back.
//  4. An ended channel neither holds back nor makes the task idle.
//
// Pure: no goroutine, lock, clock or I/O; for the task's goroutine. Read valve.go.
package watermark
