package rpc

import "time"

// IntervalRequest asks how often a job takes checkpoints, or sets it.
type IntervalRequest struct {
	Job string // id, or name of the latest job so called
	// Set says that Interval is to hold from now on, whoever leads, until the job ends;
	// 0: no periodic checkpoints.
	Set      bool
	Interval time.Duration
}

// IntervalReply is the interval that holds, 0 for none.
type IntervalReply struct{ Interval time.Duration }
