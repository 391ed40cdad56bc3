// Package explain says why a checkpoint took as long as it did.
//
// It owns the reading of a checkpoint's statistics: the chain of waits from the moment
// the coordinator wanted the checkpoint to the moment its link was in the registry, each
// with a name and a time, and one sentence of advice. It must not know how statistics are
// gathered or printed.
//
//	e := explain.Checkpoint(info, &detail.Graph)
//	for _, w := range e.Waits { … }
//
// The chain goes back from the subtask that acknowledged last: to the channel whose
// barrier came last, to the subtask that sent this barrier, and so on to a source; then
// forward. If the checkpoint failed, or is pending, it ends at a subtask that has not
// acknowledged although all that it reads from have.
//
// Invariants:
//
//  1. The waits follow each other without a gap, so their sum is the duration. What no
//     statistic accounts for is a wait of its own (Messages, Ending).
//  2. Statistics come from other processes: whatever they say, no wait is negative, no
//     chain endless, and nothing panics.
//
// Pure: no goroutines, no locks. Read explain.go, then chain.go, then advice.go.
package explain
