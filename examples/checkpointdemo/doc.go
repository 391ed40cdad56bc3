// Package checkpointdemo is the job that shows checkpoints at work, with and
// without back pressure.
//
// It owns the job "checkpoint-demo": numbered records of about 1 KB, divided by 16
// keys, counted for each key, and handed on by a map that is told of completed
// checkpoints. Slow records (the parameter sleep) put back pressure on it. It must
// not know the cluster that runs it.
//
// Since the input is numbered, the count and the sum of the numbers of each key have
// a closed form ([Expected]); with a bounded number of records the sources stay
// alive after the last one, and the state in the first checkpoint completed
// after it must be equal to it ([ReadTally] decodes it).
//
// The sources' positions and the number of processed records are in the checkpoint too,
// and prove how many records were in flight ([ReadInFlight]).
//
// No goroutines, no locks. Read job.go.
package checkpointdemo
