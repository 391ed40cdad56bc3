// Package file reads lines of text from files and writes lines to files, each
// exactly once.
//
// It owns the division of files into splits, their assignment to readers while the job
// runs, and the life of part files. It must not know what the lines mean: functions of
// the caller's make records of lines and lines of records.
//
//	lines := flow.From(g, "lines", file.Lines(file.SourceOptions{Input: "/data/in"}))
//	flow.To(lines, "out", file.NewSink(file.SinkOptions{Output: "/data/out"}, appendLine))
//
// The source is bounded. Its enumerator lists the files once, when the job first
// starts, and cuts the next split when a reader asks. A reader asks when it has none:
//
//	reader → enumerator: request        (one byte)
//	enumerator → reader: splits, or the end
//
// The enumerator's state is what was not assigned, a reader's its splits and how far
// it read them. The event gate (behaviour §24) keeps each assignment on one side of a
// checkpoint, so that each split is in exactly one of these states.
//
// A part file of the sink is written under a hidden name, made durable and named in the
// snapshot when a checkpoint begins, and published under its final name when that
// checkpoint is complete, or when the job starts from it:
//
//	.weir-….writing → .weir-….pending → part-…
//
// Invariants:
//
//  1. A line belongs to the split in which its first byte lies.
//  2. Only files that no snapshot names are deleted: those still being written. A pending
//     file may be named by a savepoint, and stays.
//  3. No file name is ever used twice; a published file is never overwritten or changed.
//  4. A file is published only if a completed checkpoint names it, and then as often as
//     asked with the same result.
//
// No goroutines, no locks: tasks and the enumerator's goroutine call. Read source.go,
// enumerator.go, reader.go, then sink.go and part.go.
package file
