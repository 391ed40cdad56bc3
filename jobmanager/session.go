package jobmanager

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/planted"
	"github.com/weirflow/weir/jobmanager/resource"
	"github.com/weirflow/weir/rpc"
)

// maxSlots bounds what one TaskManager may claim to have.
const maxSlots = 4096

// sessionHandler posts what TaskManagers say to the dispatcher's loop. Once the
// term is over it ends the session.
type sessionHandler struct{ d *dispatcher }

var _ rpc.SessionHandler = sessionHandler{}

func (h sessionHandler) Receive(s rpc.Session, m rpc.Message) {
	if !h.d.inbox.Post(heard{s, m}) {
		s.Close(errTermOver())
	}
}

func (h sessionHandler) Closed(s rpc.Session, cause error) { h.d.inbox.Post(hungUp{s, cause}) }

// heard takes a message of a TaskManager. The first one must be a registration.
func (d *dispatcher) heard(s rpc.Session, m rpc.Message) {
	p := d.peers[s]
	if r, ok := m.(rpc.Register); ok {
		if p != nil {
			s.Close(errors.New("registered twice in one session"))
			return
		}
		d.register(s, r)
		return
	}
	if p == nil {
		s.Close(errors.New("the first message is not a registration"))
		return
	}
	if d.byID[p.who.ID] != p {
		return // replaced by a newer session
	}
	d.monitor.Heard(time.Now(), p.who.ID)
	switch x := m.(type) {
	case rpc.Heartbeat:
		// A session that cannot take the answer ends by itself.
		_ = s.Send(rpc.HeartbeatAck{})
		d.figures(x.Tasks)
	case rpc.TaskStateChanged:
		d.route(s, x.Attempt, x)
		if x.State.Final() {
			d.slots(resource.Ended{TaskManager: p.who.ID, Attempt: x.Attempt})
		}
	case rpc.AcknowledgeCheckpoint:
		d.route(s, x.Attempt, x)
	case rpc.DeclineCheckpoint:
		d.route(s, x.Attempt, x)
	case rpc.EndOfData:
		d.route(s, x.Attempt, x)
	case rpc.BarrierSent:
		d.route(s, x.Attempt, x)
	case rpc.OperatorEvent:
		d.route(s, x.Attempt, x)
	case rpc.OperatorEventAck:
		d.route(s, x.Attempt, x)
	default:
		s.Close(fmt.Errorf("a TaskManager does not send %T", m))
	}
}

// register takes a TaskManager in. What still runs there is of an earlier time and
// is told to end: this leader knows of nothing that runs on a TaskManager that is not
// registered.
func (d *dispatcher) register(s rpc.Session, r rpc.Register) {
	if r.Slots < 0 || r.Slots > maxSlots || r.ID == (weir.TaskManagerID{}) {
		reason := fmt.Sprintf("a TaskManager has an id and 0 to %d slots", maxSlots)
		_ = s.Send(rpc.Refused{Reason: reason})
		s.Close(errors.New(reason))
		return
	}
	if err := s.Send(rpc.Registered{
		Epoch: d.term.leadership.Epoch(), HeartbeatInterval: d.term.cfg.HeartbeatInterval, HeartbeatTimeout: d.term.cfg.HeartbeatTimeout,
	}); err != nil {
		return
	}
	for _, attempt := range r.Running {
		if planted.Is(planted.OlderNotCancelled) {
			break
		}
		_ = s.Send(rpc.Cancel{Attempt: attempt})
	}
	p := &peer{session: s, who: r.Registration}
	old := d.byID[r.ID]
	d.peers[s], d.byID[r.ID] = p, p
	if old != nil {
		delete(d.peers, old.session)
		old.session.Close(errors.New("replaced by a newer session of the same TaskManager"))
	}
	d.monitor.Heard(time.Now(), r.ID)
	d.log.Info("TaskManager registered", zap.Stringer("taskmanager", r.ID), zap.String("host", r.Host),
		zap.String("data", r.DataAddress), zap.Int("slots", r.Slots), zap.String("code", r.CodeID), zap.Int("running", len(r.Running)))
	d.slots(resource.Register{
		TaskManager: resource.TaskManager{ID: r.ID, Incarnation: r.Incarnation, CodeID: r.CodeID, Host: r.Host, Slots: r.Slots},
		Running:     r.Running,
	})
}

// hungUp forgets a session, and its TaskManager unless it has a newer one.
func (d *dispatcher) hungUp(x hungUp) {
	p := d.peers[x.session]
	if p == nil {
		return
	}
	reason := "its session ended"
	if x.cause != nil {
		reason += ": " + x.cause.Error()
	}
	d.drop(p, reason)
}

// drop ends a TaskManager's registration.
func (d *dispatcher) drop(p *peer, reason string) {
	delete(d.peers, p.session)
	if d.byID[p.who.ID] != p {
		return
	}
	delete(d.byID, p.who.ID)
	d.monitor.Forget(p.who.ID)
	d.slots(resource.Gone{ID: p.who.ID, Incarnation: p.who.Incarnation, Reason: reason})
}

// route hands a message to its attempt's job. A final state of a job that nobody
// runs is acknowledged here.
func (d *dispatcher) route(s rpc.Session, attempt weir.AttemptID, m rpc.Message) {
	if e := d.jobs[attempt.Job]; e != nil && e.live() {
		e.master.Receive(s, m)
		return
	}
	if changed, ok := m.(rpc.TaskStateChanged); ok && changed.State.Final() {
		_ = s.Send(rpc.Forget{Attempt: attempt})
	}
}

// figures hands live figures to the jobs they belong to.
func (d *dispatcher) figures(stats []rpc.TaskStats) {
	byJob := make(map[weir.JobID][]rpc.TaskStats)
	for _, s := range stats {
		byJob[s.Attempt.Job] = append(byJob[s.Attempt.Job], s)
	}
	for id, list := range byJob {
		if e := d.jobs[id]; e != nil && e.live() {
			e.master.Figures(list)
		}
	}
}
