package checkpointing

import "time"

// Timeline says when the coordinator took each step of a snapshot, in this order. A
// step that was not reached, or that this kind of snapshot does not have, is zero.
type Timeline struct {
	Requested      time.Time // the timer fired, or somebody asked
	Decided        time.Time // the decider chose it
	Planned        time.Time // it was known who takes part
	IDTaken        time.Time // it had an id, and became pending
	Located        time.Time // the location of a savepoint was there
	Coordinated    time.Time // all operator coordinators had given their state
	Hooked         time.Time // all master hooks had
	TasksTriggered time.Time // the triggers were handed to be sent
	FirstAck       time.Time // the first task acknowledged
	LastAck        time.Time // the last one did; the metadata began to be written
	Written        time.Time // the metadata file was there
	LinkBegan      time.Time // its link began to be added, after those before it
	Linked         time.Time // the link was in the chain
	Notified       time.Time // the notifications were handed to be sent
}

// TimelineStep is a named step of a [Timeline].
type TimelineStep struct {
	Name string
	At   time.Time
}

// Steps are those that were reached, in order.
func (t Timeline) Steps() []TimelineStep {
	var steps []TimelineStep
	for _, s := range []TimelineStep{
		{"requested", t.Requested}, {"decided", t.Decided}, {"planned", t.Planned}, {"id taken", t.IDTaken},
		{"located", t.Located}, {"coordinators snapshotted", t.Coordinated}, {"hooks called", t.Hooked},
		{"tasks triggered", t.TasksTriggered}, {"first acknowledgement", t.FirstAck}, {"last acknowledgement", t.LastAck},
		{"metadata written", t.Written}, {"link began", t.LinkBegan}, {"linked", t.Linked}, {"notified", t.Notified},
	} {
		if !s.At.IsZero() {
			steps = append(steps, s)
		}
	}
	return steps
}
