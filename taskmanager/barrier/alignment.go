package barrier

import (
	"fmt"
	"time"

	"github.com/weirflow/weir"
)

// stops says whether the sender of a barrier has stopped behind it (behaviour §15.7).
func stops(ev Barrier, mode Mode) bool {
	if ev.FromRPC {
		return false
	}
	switch ev.Barrier.Options.Alignment {
	case weir.Unaligned:
		return mode == Aligned // which has no other barriers
	case weir.AtLeastOnce:
		return mode != AtLeastOnce
	case weir.Aligned, weir.ForcedAligned:
	}
	return true
}

// mayTimeOut says whether a checkpoint turns unaligned when its barriers are late.
func mayTimeOut(o weir.CheckpointOptions) bool {
	return o.Alignment == weir.Aligned && o.Timeout > 0 && !o.Kind.IsSavepoint()
}

// turnedBack are the options with which a checkpoint goes on whose barriers all came: an
// edge may have forced it to align, which the outputs need not (behaviour §17).
func turnedBack(o weir.CheckpointOptions) weir.CheckpointOptions {
	if o.Alignment != weir.ForcedAligned {
		return o
	}
	o.Alignment = weir.Aligned
	if o.Timeout == 0 {
		o.Alignment = weir.Unaligned
	}
	return o
}

// unaligned are the options with which a checkpoint goes on that did not wait.
func unaligned(o weir.CheckpointOptions) weir.CheckpointOptions {
	o.Alignment, o.Timeout = weir.Unaligned, 0
	return o
}

// progress measures one alignment.
type progress struct {
	// born is the checkpoint's trigger on our own clock. Barriers lose a little
	// age on each hop's wire, so the earliest time that any barrier implies is
	// the best.
	born       time.Time
	begun      bool      // its first barrier came
	firstAt    time.Time // when it did
	firstBytes int64     // processed by then
}

// heard learns of a barrier's age.
func (p *progress) heard(now time.Time, age time.Duration) {
	if born := now.Add(-age); p.born.IsZero() || born.Before(p.born) {
		p.born = born
	}
}

// met counts a barrier, or whatever stands for one at the end.
func (p *progress) met(now time.Time, bytes int64) {
	if !p.begun {
		p.begun, p.firstAt, p.firstBytes = true, now, bytes
	}
}

// age is the checkpoint's.
func (p *progress) age(now time.Time) time.Duration { return max(0, now.Sub(p.born)) }

// alignment is what was measured so far.
func (p *progress) alignment(now time.Time, bytes int64) Alignment {
	p.met(now, bytes)
	return Alignment{
		StartDelay: max(0, p.firstAt.Sub(p.born)),
		Duration:   max(0, now.Sub(p.firstAt)),
		Bytes:      max(0, bytes-p.firstBytes),
	}
}

// alignmentText is how a barrier aligns, for people.
func alignmentText(o weir.CheckpointOptions) string {
	if o.Timeout == 0 {
		return o.Alignment.String()
	}
	return fmt.Sprintf("%s timeout=%s", o.Alignment, o.Timeout)
}
