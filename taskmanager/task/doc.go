// Package task is the goroutine that runs one subtask.
//
// It owns [Task]: everything between a deployment and the subtask's end on this side:
// the program, the channels, the restored state, the loop, the time split. It must
// not know other tasks, slots or the session with the JobManager: it speaks to its
// [Owner] alone.
//
// The owner makes a Task with [New] and starts it; from then on it posts
// ([Task.Trigger], [Task.NotifyComplete], [Task.NotifyAborted], [Task.OperatorEvent])
// and ends it early with [Task.Interrupt]. The task tells the owner what happens to it
// in the words of package lifecycle, the last of which is always Exited.
//
// # The loop
//
// polls in a fixed order and sleeps in one place:
//
//  1. letters, the most urgent first;
//  2. barriers that overtake in the inputs, also while a batch is suspended; if the first
//     of a checkpoint are in, it waits a moment for the others (linger.go);
//  3. if every output has room: some of the timers that are due, then a batch of records
//     or a poll of the source; then outputs publish what a flush asked for;
//  4. if an output has no room, or nothing was found: everything is published, and
//     the task waits for a letter, an input, an output or its end.
//
// A flag that is set by letters, barriers that overtake, full outputs and the end makes
// the chain return between two records. A task that waits for room within a record
// ("hard" back pressure) hears of nothing until it has got it.
//
// Before it runs, a task processes what was in flight in its snapshot (recover.go).
//
// Invariants:
//
//  1. RUNNING is said after state was restored and what was in flight was processed, and
//     before anything is taken from the inputs.
//  2. Operators, state, timers, alignment and outputs are touched by the task's
//     goroutine alone.
//  3. Nothing waits any more after Interrupt, so the task leaves at the next element
//     boundary; user code that does not return is the owner's to report.
//  4. Whatever way it ends: operators are closed, channels closed, snapshots released,
//     letters answered, in this order, before Exited.
//  5. Every error that ends a task is a [weir.Failure] that says whose fault it is.
//  6. A batch costs two looks at the clock, a record none; the split into busy, idle
//     and back-pressured time is kept by changes of state.
//
// Goroutines: task/<vertex>[i]#n. No locks. Read task.go, then run.go, prepare.go,
// letter.go, channels.go.
package task
