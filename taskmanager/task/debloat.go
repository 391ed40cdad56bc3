package task

import (
	"context"
	"time"

	"github.com/weirflow/weir/netstack/buffer"
	"github.com/weirflow/weir/netstack/debloat"
	"github.com/weirflow/weir/netstack/gate"
	"github.com/weirflow/weir/taskmanager/mailbox"
)

// smallestSegment is the least number of bytes that producers are asked for, at most, per
// segment (behaviour §22).
const smallestSegment = 256

// debloated is a gate whose producers are told how large segments should be.
type debloated struct {
	gate       *gate.InputGate
	calculator *debloat.Calculator
	meter      debloat.Meter
	consumed   int64 // of its channels, when they were last asked
}

// prepareDebloating begins to size the segments of the task's inputs, if the job wants
// that.
func (t *Task) prepareDebloating() {
	o := t.d.Options.Debloat
	if !o.Enabled || o.Period <= 0 || o.Samples < 1 || o.Threshold < 0 {
		return
	}
	now := time.Now()
	for _, g := range t.io.Inputs {
		d := &debloated{gate: g, calculator: debloat.New(debloat.Options{
			Target: o.Target, Min: smallestSegment, Max: buffer.Capacity, Samples: o.Samples, Threshold: o.Threshold,
		})}
		d.meter.Resume(now)
		t.debloated = append(t.debloated, d)
	}
	if len(t.debloated) > 0 {
		t.debloatTimer = t.group.AfterFunc("task/debloat", o.Period, func(context.Context) { _ = t.box.Post(mailbox.Internal, resize{}) })
	}
}

// resize finds the size of segments anew for each gate.
func (t *Task) resize() {
	now := time.Now()
	for _, d := range t.debloated {
		var consumed int64
		for ch := range d.gate.Channels() {
			consumed += d.gate.Consumed(ch)
		}
		d.meter.Consumed(now, consumed-d.consumed)
		d.consumed = consumed
		size, announce := d.calculator.Update(d.meter.Throughput(now), d.gate.InFlight())
		if !announce {
			continue
		}
		for ch := range d.gate.Channels() {
			d.gate.AnnounceBufferSize(ch, size)
		}
	}
	t.debloatTimer.Reset(t.d.Options.Debloat.Period)
}

// idled tells the meters of a time in which there was no input.
func (t *Task) idled(from, to time.Time) {
	for _, d := range t.debloated {
		d.meter.Pause(from)
		d.meter.Resume(to)
	}
}
