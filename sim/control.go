package sim

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/weirflow/weir/rpc"
)

// dialer opens sessions of one TaskManager, to whichever JobManager leads.
type dialer struct {
	w  *World
	by *instance
}

var _ rpc.Dialer = dialer{}

// Dial asks the JobManagers in turn, beginning with one that the seed chooses: there
// may be one that does not know yet that it leads no more.
func (d dialer) Dial(ctx context.Context, h rpc.SessionHandler) (rpc.Session, error) {
	w := d.w
	if err := w.await(ctx, topicDial, d.by, "jobmanagers", false); err != nil {
		return nil, err
	}
	err := errNetwork
	for n := range w.jms {
		p := w.jms[(n+w.firstAsked)%len(w.jms)]
		jm := p.running()
		if jm == nil || !w.reachable(d.by.p.name, p.name) {
			continue
		}
		handler, refused := jm.jm.Accept(ctx)
		if refused != nil {
			err = refused
			continue
		}
		return w.connect(d.by, jm, h, handler), nil
	}
	return nil, fmt.Errorf("dial: %w", err)
}

// session is one conversation; its ends are what the two sides hold.
type session struct {
	w      *World
	name   string
	tm, jm *sessionEnd
}

// sessionEnd is one end of a session.
type sessionEnd struct {
	s       *session
	by      *instance
	other   *sessionEnd
	handler rpc.SessionHandler
	inbox   string // name of the pipe towards this end

	mu struct {
		sync.Mutex
		closed bool // this end knows that the session has ended, or is about to be told
		told   bool // Closed was called
	}
}

var _ rpc.Session = (*sessionEnd)(nil)

func (w *World) connect(tm, jm *instance, atTM, atJM rpc.SessionHandler) *sessionEnd {
	w.mu.Lock()
	w.sessions++
	n := w.sessions
	w.mu.Unlock()
	s := &session{w: w, name: fmt.Sprintf("%s-%s/%d", tm.p.name, jm.p.name, n)}
	s.tm = &sessionEnd{s: s, by: tm, handler: atTM, inbox: fmt.Sprintf("%s>%s/%d", jm.p.name, tm.p.name, n)}
	s.jm = &sessionEnd{s: s, by: jm, handler: atJM, inbox: fmt.Sprintf("%s>%s/%d", tm.p.name, jm.p.name, n)}
	s.tm.other, s.jm.other = s.jm, s.tm
	tm.addSession(s.tm)
	jm.addSession(s.jm)
	return s.tm
}

// Peer names the other side.
func (e *sessionEnd) Peer() string { return e.other.by.p.name }

// Send puts a message on its way.
func (e *sessionEnd) Send(m rpc.Message) error {
	e.mu.Lock()
	closed := e.mu.closed
	e.mu.Unlock()
	if closed || e.by.dead.Load() {
		return rpc.ErrSessionClosed
	}
	e.s.w.oracle.sent(e.by, m)
	e.send(item{what: describe(m), deliver: func() { e.other.receive(m) }})
	return nil
}

func (e *sessionEnd) send(it item) {
	o := e.other
	e.s.w.put(topicControl, o.inbox, e.by.p.name, o.by.p.name, it)
}

// receive hands over a message; the root goroutine plays the session's.
func (e *sessionEnd) receive(m rpc.Message) {
	e.mu.Lock()
	closed := e.mu.closed
	e.mu.Unlock()
	if closed || e.by.dead.Load() {
		return
	}
	e.s.w.oracle.received(e.by, m)
	e.handler.Receive(e, m)
}

// Close ends the session: this end is told in a step of its own, the other behind
// what was sent.
func (e *sessionEnd) Close(cause error) {
	if cause == nil {
		cause = rpc.ErrSessionClosed
	}
	if !e.shut() {
		return
	}
	w := e.s.w
	w.put(topicControl, e.inbox+" end", e.by.p.name, e.by.p.name, item{what: "closed here", deliver: func() { e.tell(cause) }})
	e.send(item{what: "closed there", deliver: func() { e.other.end(cause) }})
}

// shut marks the end closed and says whether it was the first to.
func (e *sessionEnd) shut() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	first := !e.mu.closed
	e.mu.closed = true
	return first
}

// end is what the other side's Close, or a broken connection, does to this end.
func (e *sessionEnd) end(cause error) {
	if e.shut() {
		e.tell(cause)
	}
}

func (e *sessionEnd) tell(cause error) {
	e.mu.Lock()
	told := e.mu.told
	e.mu.told = true
	e.mu.Unlock()
	if !told {
		e.handler.Closed(e, cause)
	}
}

// errBroken is what both ends learn when a connection breaks.
var errBroken = errors.New("simulated connection broke")

// breakOff breaks a session: what is on its way to this end's peer arrives or not, as
// the seed wants, and then the peer is told; so is this end, unless it is dead.
func (w *World) breakOff(e *sessionEnd) {
	for _, end := range []*sessionEnd{e, e.other} {
		lose := w.chance(0.5)
		w.mu.Lock()
		if p := w.mu.pipes[end.inbox]; p != nil && lose {
			p.queue = nil
		}
		w.putLocked(topicControl, end.inbox, end.other.by.p.name, end.by.p.name, item{what: "broken", deliver: func() { end.end(errBroken) }})
		w.mu.Unlock()
	}
}

// unsettle breaks a TaskManager's sessions, so that it looks for a leader anew.
func (w *World) unsettle() {
	p := w.someRunning(w.tms)
	if p == nil {
		return
	}
	w.trace("fault", "sessions of %s", p.name)
	for _, e := range p.running().sessions() {
		if !e.over() {
			w.breakOff(e)
		}
	}
}

// over says whether the session has ended here.
func (e *sessionEnd) over() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mu.closed
}

// describe names a message for the trace.
func describe(m rpc.Message) string {
	switch m := m.(type) {
	case rpc.Register:
		return fmt.Sprintf("Register %d slots, %d running", m.Slots, len(m.Running))
	case rpc.Registered:
		return fmt.Sprintf("Registered epoch %d", m.Epoch)
	case rpc.Refused:
		return "Refused " + m.Reason
	case rpc.Heartbeat, rpc.HeartbeatAck:
		return "" // too many, too dull
	case rpc.TaskStateChanged:
		why := ""
		if m.Failure != nil {
			why = ": " + firstLine(m.Failure.Error())
		}
		return fmt.Sprintf("TaskStateChanged %s %s%s", m.Attempt, m.State, why)
	case rpc.AcknowledgeCheckpoint:
		return fmt.Sprintf("AcknowledgeCheckpoint %d %s", m.Checkpoint, m.Attempt)
	case rpc.DeclineCheckpoint:
		return fmt.Sprintf("DeclineCheckpoint %d %s %s", m.Checkpoint, m.Attempt, m.Reason)
	case rpc.EndOfData:
		return fmt.Sprintf("EndOfData %s", m.Attempt)
	case rpc.BarrierSent:
		return fmt.Sprintf("BarrierSent %d %s", m.Checkpoint, m.Attempt)
	case rpc.OperatorEvent:
		return fmt.Sprintf("OperatorEvent %d %s", m.Seq, m.Attempt)
	case rpc.OperatorEventAck:
		return fmt.Sprintf("OperatorEventAck %d %s", m.Seq, m.Attempt)
	case rpc.Deploy:
		return fmt.Sprintf("Deploy %s from checkpoint %d", m.Deployment.Attempt, m.Deployment.RestoredFrom)
	case rpc.Cancel:
		return fmt.Sprintf("Cancel %s", m.Attempt)
	case rpc.TriggerCheckpoint:
		return fmt.Sprintf("TriggerCheckpoint %d %s", m.Barrier.ID, m.Attempt)
	case rpc.NotifyCheckpointComplete:
		return fmt.Sprintf("NotifyCheckpointComplete %d %s", m.Checkpoint, m.Attempt)
	case rpc.NotifyCheckpointAborted:
		return fmt.Sprintf("NotifyCheckpointAborted %d %s", m.Checkpoint, m.Attempt)
	case rpc.Forget:
		return fmt.Sprintf("Forget %s", m.Attempt)
	}
	return fmt.Sprintf("%T", m)
}
