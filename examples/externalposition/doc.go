// Package externalposition is the example of a master hook: a job whose checkpoints
// carry the position of a log that somebody else writes.
//
// It owns the job "external-position": the lines of a file that grows while the job
// runs are none of its input; the hook notes in each checkpoint how long the file was when
// the checkpoint began, tells in another file how long it was when the newest complete
// checkpoint began, so that a cleaner may remove what lies before, and on a restart
// takes the note back to the checkpoint that the job starts from. It must not know the
// cluster that runs it.
//
// No goroutines, no locks. Read hook.go, then job.go.
package externalposition
