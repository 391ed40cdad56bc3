package taskmanager

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/taskmanager/chanstate"
	"github.com/weirflow/weir/taskmanager/lifecycle"
	"github.com/weirflow/weir/taskmanager/snapshot"
	"github.com/weirflow/weir/taskmanager/task"
)

// jobGoneAfter is how long a job has no attempt here until it is taken to be gone. A
// restart takes less.
const jobGoneAfter = 2 * time.Minute

// loop is the state of tm/loop. Only that goroutine touches it.
type loop struct {
	tm        *TaskManager
	o         *Options
	inbox     *inbox
	group     *group.Group
	resources task.Resources
	log       *zap.Logger

	session    rpc.Session // nil: there is none
	registered bool        // the JobManager has accepted us on this session
	// epoch is the newest that registered us; what is older has no effect.
	epoch    weir.LeaderEpoch
	interval time.Duration // of heartbeats
	timeout  time.Duration // without a word of the JobManager
	heard    time.Time     // when it last said something
	rounds   struct{ beat, silent, abandoned int }

	fruitless int        // sessions in a row that did not come to a registration
	random    *rand.Rand // for jitter

	attempts map[weir.AttemptID]*attempt
	left     map[weir.JobID]int // how often the last attempt of a job was forgotten
	stopping bool
}

// attempt is one row of the task table.
type attempt struct {
	id       weir.AttemptID
	life     *lifecycle.Task
	task     *task.Task            // nil if it was refused
	last     *rpc.TaskStateChanged // the last report, repeated after a reconnect
	held     bool                  // it takes up its slot
	deadline *group.Timer          // until it has to have stopped
	sampled  sample                // for ratios in heartbeats
}

func newLoop(t *TaskManager, g *group.Group, executor *snapshot.Executor) *loop {
	o := &t.o
	return &loop{
		tm: t, o: o, inbox: t.inbox, group: g, log: o.Logger,
		resources: task.Resources{
			Catalog: o.Catalog, Stack: o.Stack, Store: o.Store, Backends: o.Backends, Executor: executor,
			Channels: chanstate.NewGroups(g), Metrics: o.Metrics, Logger: o.Logger, OpenStore: o.OpenStore, BuildTimeout: o.BuildTimeout,
			NotifyTimeout: o.NotifyTimeout, NotifyWarning: o.NotifyWarning,
		},
		random:   rand.New(rand.NewPCG(uint64(o.Incarnation), binary.BigEndian.Uint64(o.ID[:]))),
		attempts: map[weir.AttemptID]*attempt{},
		left:     map[weir.JobID]int{},
	}
}

// run is tm/loop: it ends after stop, once every task has ended.
func (l *loop) run(ctx context.Context) error {
	defer close(l.tm.ended)
	l.loseJobManager()
	l.dial()
	for !l.stopping || l.running() > 0 {
		select {
		case <-l.inbox.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		for _, ev := range l.inbox.take() {
			l.handle(ev)
		}
	}
	if l.session != nil {
		l.session.Close(errClosing)
	}
	return nil
}

func (l *loop) handle(ev event) {
	switch ev := ev.(type) {
	case connected:
		l.onConnected(ev.session)
	case received:
		l.onReceived(ev)
	case closed:
		l.onClosed(ev)
	case changed:
		if a := l.attempts[ev.attempt]; a != nil {
			l.step(a, ev.what)
		}
	case send:
		l.send(ev.message)
	case beat:
		l.onBeat(ev)
	case silent:
		l.onSilent(ev)
	case abandoned:
		l.onAbandoned(ev)
	case redial:
		if !l.stopping {
			l.dial()
		}
	case gone:
		if !l.has(ev.job) && l.left[ev.job] == ev.round {
			delete(l.left, ev.job)
			l.o.JobGone(ev.job)
		}
	case stuck:
		l.onStuck(ev)
	case stop:
		l.onStop()
	}
}

// running is the number of attempts that have not ended.
func (l *loop) running() int {
	n := 0
	for _, a := range l.attempts {
		if !a.life.State().Final() {
			n++
		}
	}
	return n
}

func (l *loop) onStop() {
	if l.stopping {
		return
	}
	l.stopping = true
	for _, a := range l.sorted() {
		l.step(a, lifecycle.Cancel{})
	}
}

// sorted returns the attempts in the order of their ids, so that equal events have
// equal consequences.
func (l *loop) sorted() []*attempt {
	all := slices.Collect(maps.Values(l.attempts))
	slices.SortFunc(all, func(a, b *attempt) int { return compare(a.id, b.id) })
	return all
}

func compare(a, b weir.AttemptID) int {
	return cmp.Or(
		bytes.Compare(a.Job[:], b.Job[:]), cmp.Compare(a.Vertex, b.Vertex), cmp.Compare(a.Subtask, b.Subtask),
		cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.N, b.N),
	)
}

// forget drops an attempt that has ended. When it was its job's last one here, and
// stays the last for a while, the job has gone.
func (l *loop) forget(a *attempt) {
	delete(l.attempts, a.id)
	if job := a.id.Job; !l.has(job) {
		l.left[job]++
		l.after("tm/gone", jobGoneAfter, gone{job, l.left[job]})
	}
}

func (l *loop) has(job weir.JobID) bool {
	for id := range l.attempts {
		if id.Job == job {
			return true
		}
	}
	return false
}

// after posts an event after a time, unless everything stops first.
func (l *loop) after(name string, d time.Duration, ev event) *group.Timer {
	return l.group.AfterFunc(name, d, func(context.Context) { l.inbox.post(ev) })
}
