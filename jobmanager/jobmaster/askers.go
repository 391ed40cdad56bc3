package jobmaster

import (
	"context"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobmanager/ha"
)

// maxAnswers is how many answers to requests for snapshots are remembered, so that a
// repeated request gets the same.
const maxAnswers = 256

// askers are those who wait for snapshots and for a stop, and the answers that were given.
type askers struct {
	snapshots map[string]*askedSnapshot // by request id
	answered  []string                  // request ids, oldest first

	stop   string               // request id of the stop that is under way, "": none
	stops  []chan<- StopEnded   // who waits for it
	failed map[string]StopEnded // how earlier ones went, by request id
	ended  *StopEnded           // how it went with which the job ends
}

// askedSnapshot is a snapshot that was asked for, perhaps more than once.
type askedSnapshot struct {
	kind    weir.SnapshotKind
	waiters []chan<- SnapshotEnded
	answer  *SnapshotEnded
}

// snapshotAsked takes a request for a snapshot. One that was made before is not made again.
func (l *loop) snapshotAsked(x snapshotAsked) {
	if l.asked.snapshots == nil {
		l.asked.snapshots = make(map[string]*askedSnapshot)
	}
	known := l.asked.snapshots[x.event.Request]
	switch {
	case l.core == nil:
		l.early = append(l.early, x)
	case known == nil:
		l.asked.snapshots[x.event.Request] = &askedSnapshot{kind: x.event.Kind, waiters: []chan<- SnapshotEnded{x.reply}}
		l.step(x.event)
	case known.kind != x.event.Kind:
		x.reply <- SnapshotEnded{Request: x.event.Request, Reason: weir.TriggerCheckpointFailure, Message: "this request id was used for a " + known.kind.String()}
	case known.answer != nil:
		x.reply <- *known.answer
	default:
		known.waiters = append(known.waiters, x.reply)
	}
}

// snapshotEnded answers all who asked for it.
func (l *loop) snapshotEnded(a SnapshotEnded) {
	known := l.asked.snapshots[a.Request]
	if known == nil {
		return
	}
	known.answer = &a
	for _, w := range known.waiters {
		w <- a
	}
	known.waiters = nil
	l.asked.answered = append(l.asked.answered, a.Request)
	if len(l.asked.answered) > maxAnswers {
		delete(l.asked.snapshots, l.asked.answered[0])
		l.asked.answered = l.asked.answered[1:]
	}
}

// stopAsked takes a request to stop.
func (l *loop) stopAsked(x stopAsked) {
	refuse := func(why string) { x.reply <- StopEnded{Request: x.stop.Request, Refused: true, Failure: why} }
	a := &l.asked
	failed, known := a.failed[x.stop.Request]
	switch {
	case l.core == nil:
		l.early = append(l.early, x)
	case a.stop == x.stop.Request:
		a.stops = append(a.stops, x.reply)
	case known:
		x.reply <- failed
	case a.stop != "":
		refuse("it is being stopped already, by another request (" + a.stop + ")")
	case a.ended != nil || !l.ended.IsZero():
		refuse("it is ending")
	default:
		a.stop, a.stops = x.stop.Request, []chan<- StopEnded{x.reply}
		l.step(StopRequested{Stop: x.stop})
	}
}

// stopEnded answers all who asked for the stop; if the job has ended with it, once that
// is recorded.
func (l *loop) stopEnded(e StopEnded) {
	if l.asked.stop != e.Request {
		return
	}
	if l.core.phase == ended {
		l.asked.ended = &e
		l.answerEnded()
		return
	}
	if !e.Refused {
		l.remember(e)
	}
	l.answerStop(e)
}

// answerEnded answers those who wait for the job's end.
func (l *loop) answerEnded() {
	if l.status.terminalWritten && l.asked.ended != nil {
		l.answerStop(*l.asked.ended)
	}
}

func (l *loop) answerStop(e StopEnded) {
	for _, w := range l.asked.stops {
		w <- e
	}
	l.asked.stop, l.asked.stops = "", nil
}

// resumeStop goes on with what an earlier leader has recorded of a stop.
func (l *loop) resumeStop(s *ha.Stop) *Stop {
	if s == nil {
		return nil
	}
	for _, f := range s.Earlier {
		l.remember(failedStop(f))
	}
	if f, failed := s.Failed(s.RequestID); failed {
		l.remember(failedStop(f))
		return nil
	}
	l.asked.stop = s.RequestID
	return &Stop{Request: s.RequestID, Kind: s.Kind, Directory: s.Directory}
}

// remember keeps the answer of a stop after which the job goes on.
func (l *loop) remember(e StopEnded) {
	if l.asked.failed == nil {
		l.asked.failed = make(map[string]StopEnded)
	}
	l.asked.failed[e.Request] = e
}

func failedStop(f ha.FailedStop) StopEnded {
	return StopEnded{Request: f.RequestID, Failure: f.Failure, Checkpoint: f.Checkpoint, Metadata: f.Metadata}
}

// FailedStop is how a stop went after which the job went on, as it was recorded.
func FailedStop(s *ha.Stop, request string) (StopEnded, bool) {
	f, ok := s.Failed(request)
	return failedStop(f), ok
}

// TakeSnapshot takes a snapshot of the job and waits for its end. A request that was
// made before, and not long ago, gets the answer of then.
func (m *JobMaster) TakeSnapshot(ctx context.Context, e SnapshotRequested) (SnapshotEnded, error) {
	reply := make(chan SnapshotEnded, 1)
	return await(ctx, m, snapshotAsked{e, reply}, reply)
}

// StopWithSavepoint ends the job with a savepoint, and waits until it has ended or will not. A request
// that was made before gets the same answer.
func (m *JobMaster) StopWithSavepoint(ctx context.Context, s Stop) (StopEnded, error) {
	reply := make(chan StopEnded, 1)
	return await(ctx, m, stopAsked{s, reply}, reply)
}

// await posts a letter and waits for its answer.
func await[T any](ctx context.Context, m *JobMaster, l letter, reply <-chan T) (answer T, err error) {
	if !m.inbox.Post(l) {
		return answer, ErrNoLoop
	}
	select {
	case answer = <-reply:
		return answer, nil
	case <-ctx.Done():
		return answer, context.Cause(ctx)
	case <-m.group.Context().Done():
	}
	select { // the answer may have been the loop's last word
	case answer = <-reply:
		return answer, nil
	default:
		return answer, ErrNoLoop
	}
}

// StopOf is how the stop of a request ended with which the job did.
func (r Report) StopOf(request string) (StopEnded, bool) {
	if r.Stopped == nil || r.Stopped.Request != request || !r.Status.Final() {
		return StopEnded{}, false
	}
	return *r.Stopped, true
}
