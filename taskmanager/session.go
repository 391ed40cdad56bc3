package taskmanager

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/planted"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/taskmanager/lifecycle"
)

// Causes with which a session is closed.
var (
	errNoAnswer = errors.New("the job manager does not answer")
	errOldEpoch = errors.New("the job manager's epoch is older than one that registered us")
)

// dial looks for the JobManager until it finds it.
func (l *loop) dial() {
	jitter := rand.New(rand.NewPCG(l.random.Uint64(), l.random.Uint64()))
	err := l.group.Go("tm/dial", func(ctx context.Context) error {
		var told time.Time // when the log was last told that there is none
		for pause := l.o.DialBackoff; ; pause = min(2*pause, l.o.DialBackoffMax) {
			s, err := l.dialOnce(ctx)
			if err == nil {
				l.inbox.post(connected{s})
				return nil
			}
			if time.Since(told) > time.Minute {
				l.log.Warn("no job manager yet; still trying", zap.Error(err), zap.String("hint", "is one running at an address that --jobmanager names?"))
				told = time.Now()
			}
			select {
			case <-time.After(jittered(jitter, pause)):
			case <-ctx.Done():
				return nil
			}
		}
	})
	if err != nil {
		l.log.Debug("no dialling any more", zap.Error(err))
	}
}

// jittered is somewhere between half of d and one and a half.
func jittered(r *rand.Rand, d time.Duration) time.Duration {
	return d/2 + time.Duration(r.Int64N(int64(d)+1))
}

func (l *loop) dialOnce(ctx context.Context) (rpc.Session, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, l.o.DialTimeout, errNoAnswer)
	defer cancel()
	return l.o.Dialer.Dial(ctx, hears{l.inbox})
}

// onConnected registers.
func (l *loop) onConnected(s rpc.Session) {
	if l.stopping {
		s.Close(errClosing)
		return
	}
	l.session, l.registered = s, false
	address := l.o.DataAddress
	if address == "" {
		address = l.o.Stack.Address()
	}
	r := rpc.Register{Registration: rpc.Registration{
		ID: l.o.ID, Incarnation: l.o.Incarnation, DataAddress: address, Host: l.o.Host, CodeID: l.o.CodeID,
		Slots: l.o.Slots, Memory: l.o.Memory, MetricsAddress: l.o.MetricsAddress,
	}}
	for _, a := range l.sorted() {
		if !a.life.State().Final() {
			r.Running = append(r.Running, a.id)
		}
	}
	if err := s.Send(r); err != nil {
		// The session ended before we knew of it, and its Closed came before it did.
		l.onClosed(closed{s, err})
		return
	}
	l.rounds.silent++
	l.after("tm/silent", l.o.DialTimeout, silent{l.rounds.silent})
}

// send sends a message, if somebody listens. A failed Send is followed by Closed.
func (l *loop) send(m rpc.Message) {
	if l.session == nil {
		return
	}
	if err := l.session.Send(m); err != nil {
		l.log.Debug("message lost", zap.String("message", fmt.Sprintf("%T", m)), zap.Error(err))
	}
}

// onClosed looks for a JobManager again.
func (l *loop) onClosed(ev closed) {
	if ev.session != l.session || l.session == nil {
		return // an older one
	}
	l.log.Info("lost the job manager", zap.String("peer", ev.session.Peer()), zap.Error(ev.cause))
	l.session = nil
	l.rounds.beat++
	l.rounds.silent++
	if l.registered {
		l.registered = false
		l.fruitless = 0
		l.loseJobManager()
	}
	if !l.stopping {
		pause := min(l.o.DialBackoff<<min(l.fruitless, 16), l.o.DialBackoffMax)
		l.fruitless++
		l.after("tm/redial", jittered(l.random, pause), redial{})
	}
}

// hangUp ends the session.
func (l *loop) hangUp(cause error) {
	s := l.session
	s.Close(cause)
	l.onClosed(closed{s, cause})
}

// loseJobManager starts the grace time.
func (l *loop) loseJobManager() {
	l.rounds.abandoned++
	l.after("tm/abandoned", l.o.GraceTime, abandoned{l.rounds.abandoned})
}

// onAbandoned fails what runs: nobody would learn of its results, and another leader
// may have started it anew.
func (l *loop) onAbandoned(ev abandoned) {
	if ev.round != l.rounds.abandoned || l.registered {
		return
	}
	f := &weir.Failure{Message: fmt.Sprintf("no job manager for %v", l.o.GraceTime), Fault: weir.FaultSystem}
	for _, a := range l.sorted() {
		if !a.life.State().Final() {
			l.step(a, lifecycle.Fail{Failure: f})
		}
	}
}

// onReceived handles a message of the current session; others are of the past.
func (l *loop) onReceived(ev received) {
	if ev.session != l.session || l.session == nil {
		return
	}
	l.heard = time.Now()
	switch m := ev.message.(type) {
	case rpc.Registered:
		l.onRegistered(m)
	case rpc.Refused:
		l.log.Warn("the job manager refused the registration", zap.String("reason", m.Reason))
		l.hangUp(fmt.Errorf("registration refused: %s", m.Reason))
	default:
		if l.registered {
			l.obey(m)
		}
	}
}

// onRegistered takes a JobManager as the leader, unless a newer one had registered us.
func (l *loop) onRegistered(m rpc.Registered) {
	if m.Epoch < l.epoch && !planted.Is(planted.OldEpochObeyed) {
		l.log.Warn("an old job manager", zap.Uint64("epoch", uint64(m.Epoch)), zap.Uint64("newest", uint64(l.epoch)))
		l.hangUp(errOldEpoch)
		return
	}
	l.log.Info("registered", zap.String("peer", l.session.Peer()), zap.Uint64("epoch", uint64(m.Epoch)))
	l.epoch, l.registered = m.Epoch, true
	l.rounds.abandoned++
	for _, a := range l.sorted() {
		if a.last != nil {
			l.send(*a.last)
		}
	}
	l.cancelOlder()
	l.interval = clamp(m.HeartbeatInterval, 100*time.Millisecond, time.Minute, 5*time.Second)
	l.timeout = clamp(m.HeartbeatTimeout, 3*l.interval, time.Hour, 10*l.interval)
	l.rounds.beat++
	l.rounds.silent++
	l.after("tm/beat", l.interval, beat{l.rounds.beat})
}

// clamp bounds what a JobManager says; zero means the default.
func clamp(d, low, high, def time.Duration) time.Duration {
	if d == 0 {
		d = def
	}
	return min(max(d, low), high)
}

// cancelOlder cancels what older leaders started, and forgets how their attempts
// ended: those who would like to know are gone.
func (l *loop) cancelOlder() {
	for id, a := range l.attempts {
		switch {
		case id.Epoch >= l.epoch || planted.Is(planted.OlderNotCancelled):
		case a.life.State().Final():
			delete(l.attempts, id)
		default:
			l.step(a, lifecycle.Cancel{})
		}
	}
}

// onBeat sends a heartbeat, and gives up a JobManager that says nothing.
func (l *loop) onBeat(ev beat) {
	if ev.round != l.rounds.beat || !l.registered {
		return
	}
	if silence := time.Since(l.heard); silence > l.timeout {
		l.hangUp(fmt.Errorf("%w for %v", errNoAnswer, silence))
		return
	}
	l.send(rpc.Heartbeat{Epoch: l.epoch, Tasks: l.stats(time.Now())})
	tenth := l.interval / 10
	l.after("tm/beat", l.interval-tenth+jittered(l.random, tenth), ev)
}

// onSilent gives up a JobManager that did not answer the registration.
func (l *loop) onSilent(ev silent) {
	if ev.round == l.rounds.silent && l.session != nil && !l.registered {
		l.hangUp(errNoAnswer)
	}
}
