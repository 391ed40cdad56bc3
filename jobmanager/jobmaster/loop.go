package jobmaster

import (
	"context"
	"errors"
	"maps"
	"time"

	"go.uber.org/zap"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/internal/stoppoint"
	"github.com/weirflow/weir/jobmanager/checkpointing"
	"github.com/weirflow/weir/jobmanager/checkpointing/store"
	"github.com/weirflow/weir/jobmanager/execgraph"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/jobmanager/opcoord"
	"github.com/weirflow/weir/metrics"
	"github.com/weirflow/weir/rpc"
)

// loop is the goroutine job/<id>. Everything in it is written by that goroutine alone.
type loop struct {
	m    *JobMaster
	deps Deps
	log  *zap.Logger
	figs *metrics.Job

	core  *Core // nil until the job was loaded
	spec  *Spec
	body  *Submission
	chain *store.Chain
	// cleaner deletes files; what it could not delete is in leftovers.
	cleaner   *store.Cleaner
	leftovers leftovers
	// waitsFor says why the job was not loaded yet.
	waitsFor string

	sessions    map[execgraph.Location]rpc.Session // of TaskManagers with our slots (slot 0)
	hosts       map[weir.TaskManagerID]string
	reporter    rpc.Session // of the message that is being handled
	timers      map[TimerKey]*group.Timer
	enumerators map[weir.OperatorID]*enumerator
	leaving     []*enumerator // told to end
	hooks       []*hook
	hooksBefore []*hook // told to end
	stats       map[weir.AttemptID]rpc.TaskStats
	status      statusWriter
	asked       askers
	early       []letter // requests that came before the job was loaded
	calls       int      // on pools, under way
	ended       time.Time
	over        bool // nothing is left to do
	final       Report
}

func newLoop(m *JobMaster) *loop {
	return &loop{
		m: m, deps: m.deps,
		log:         m.deps.Logger.With(zap.Stringer("job", m.record.Job), zap.String("name", m.record.Name)),
		figs:        m.deps.Metrics.Job(m.record.Job, m.record.Name),
		sessions:    make(map[execgraph.Location]rpc.Session),
		hosts:       make(map[weir.TaskManagerID]string),
		timers:      make(map[TimerKey]*group.Timer),
		enumerators: make(map[weir.OperatorID]*enumerator),
		stats:       make(map[weir.AttemptID]rpc.TaskStats),
	}
}

// run is the goroutine. A panic in the core fails the job, not the process.
func (l *loop) run(ctx context.Context) error {
	defer l.leave()
	l.load()
	for !l.over {
		for _, letter := range l.m.inbox.Take() {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := group.Catch(func() error { l.handle(letter); return nil }); err != nil {
				l.crashed(err)
			}
		}
		if l.over = l.finished(); l.over {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.m.inbox.Wake():
		}
	}
	return nil
}

// leave ends what the job still runs. Who asks for a view afterwards is told that
// there is no loop.
func (l *loop) leave() {
	l.m.inbox.Close()
	for _, t := range l.timers {
		t.Stop()
	}
	for _, e := range l.enumerators {
		l.leaving = append(l.leaving, e)
	}
	for _, e := range l.leaving {
		e.stop(errJobOver)
	}
	for _, e := range l.leaving {
		l.await(e)
	}
	l.leaveHooks()
	l.m.group.Cancel(errJobOver)
}

// await waits a while for an enumerator that was told to end.
func (l *loop) await(e *enumerator) {
	var stuck *group.StuckError
	if err := e.await(); errors.As(err, &stuck) {
		l.log.Warn("enumerator does not end; it is abandoned", zap.String("operator", e.start.Name))
	}
}

func (l *loop) handle(letter letter) {
	switch x := letter.(type) {
	case happened:
		if t, ok := x.event.(TimerFired); ok {
			delete(l.timers, t.Key)
		}
		l.step(x.event)
	case loaded:
		l.begin(x)
	case notLoaded:
		l.waitsFor = x.reason
	case unloadable:
		l.refuse(x.failure)
	case granted:
		l.granted(x)
	case lost:
		delete(l.sessions, execgraph.Location{TaskManager: x.id, Incarnation: x.incarnation})
		l.step(TaskManagerLost{TaskManager: x.id, Incarnation: x.incarnation, Reason: x.reason})
	case received:
		l.reporter = x.session
		l.received(x.message)
		l.reporter = nil
	case figures:
		l.keep(x.stats)
	case cancelled:
		l.cancel()
	case snapshotAsked:
		l.snapshotAsked(x)
	case stopAsked:
		l.stopAsked(x)
	case ask:
		x.reply <- l.shown()
	case intervalSet:
		l.setInterval(x)
	case effectDone:
		l.calls--
		if x.event != nil {
			l.step(x.event)
		}
	case statusWritten:
		l.statusWritten(x)
	case statusRetry:
		l.writeStatus()
	}
}

// step feeds the core and carries out what it says.
func (l *loop) step(ev Event) {
	if l.core == nil {
		return
	}
	now := time.Now()
	for _, a := range l.core.Step(now, ev) {
		l.do(a)
	}
}

// keep takes live figures of current attempts, and drops those of earlier ones.
func (l *loop) keep(stats []rpc.TaskStats) {
	if l.core == nil {
		return
	}
	for _, s := range stats {
		if _, ok := l.core.graph.Find(s.Attempt); ok {
			l.stats[s.Attempt] = s
		}
	}
	if len(l.stats) > l.core.graph.Total() {
		maps.DeleteFunc(l.stats, func(id weir.AttemptID, _ rpc.TaskStats) bool {
			_, ok := l.core.graph.Find(id)
			return !ok
		})
	}
}

// begin makes the core of the job that was loaded.
func (l *loop) begin(x loaded) {
	if !l.ended.IsZero() {
		return // cancelled meanwhile
	}
	l.spec, l.body, l.chain = x.spec, x.submission, x.chain
	l.cleaner = store.NewCleaner(l.deps.Blobs, x.spec.Job, x.chain)
	l.cleaner.OpenStore = l.deps.OpenStore
	l.core = NewCore(x.spec)
	x.start.Stop = l.resumeStop(x.stop)
	defer func() {
		for _, letter := range l.early {
			l.handle(letter)
		}
		l.early = nil
	}()
	l.step(x.start)
}

// refuse ends a job that cannot be loaded.
func (l *loop) refuse(f weir.Failure) {
	if !l.ended.IsZero() {
		return
	}
	l.ended = time.Now()
	l.log.Error("job cannot be run", zap.String("failure", f.Message))
	l.setStatus(SetStatus{Status: rpc.JobFailed, Detail: f.Message, Restarts: int(l.m.first.Restarts), Failure: &f})
}

// crashed ends a job whose core panicked: a bug of ours. What runs is told to end;
// nothing else can be decided about the job any more.
func (l *loop) crashed(err error) {
	failure := &weir.Failure{Message: "the job's master failed: " + err.Error(), NoRetry: true, Subtask: -1}
	var panicked *group.PanicError
	if errors.As(err, &panicked) {
		failure.Stack = panicked.Stack
	}
	l.log.Error("job's master panicked", zap.Error(err), zap.String("stack", failure.Stack))
	if l.core != nil {
		for x := range l.core.graph.Executions() {
			if x.State.Deployed() {
				l.send(Send{To: x.At, Message: rpc.Cancel{Attempt: x.ID}})
			}
		}
	}
	for op := range l.enumerators {
		l.stopEnumerator(op)
	}
	l.deps.Slots.Release(l.m.record.Job)
	l.core, l.ended = nil, time.Now()
	l.setStatus(SetStatus{Status: rpc.JobFailed, Detail: failure.Message, Failure: failure})
}

// cancel ends the job. One that was not loaded yet has nothing that runs under this
// leader, and ends at once.
func (l *loop) cancel() {
	if l.core != nil {
		l.step(CancelRequested{})
		return
	}
	if l.ended.IsZero() {
		l.ended = time.Now()
		l.setStatus(SetStatus{Status: rpc.JobCanceled, Restarts: int(l.m.first.Restarts)})
	}
}

func (l *loop) granted(x granted) {
	slots := make([]Slot, len(x.grants))
	for i, g := range x.grants {
		at := execgraph.Location{TaskManager: g.TaskManager, Incarnation: g.Incarnation, Slot: g.Index}
		slots[i] = Slot{Location: at, DataAddress: g.DataAddress}
		l.sessions[taskManagerOf(at)] = g.Session
		l.hosts[g.TaskManager] = g.Host
	}
	if l.core == nil {
		return
	}
	l.step(SlotsGranted{Request: x.n, Slots: slots})
}

// received turns a message of a TaskManager into an event.
func (l *loop) received(m rpc.Message) {
	switch x := m.(type) {
	case rpc.TaskStateChanged:
		switch {
		case x.State > rpc.TaskFailed:
			l.log.Warn("unknown task state", zap.Stringer("attempt", x.Attempt), zap.Uint8("state", uint8(x.State)))
		case l.core == nil && x.State.Final():
			l.forget(x.Attempt)
		default:
			l.step(TaskState{Attempt: x.Attempt, State: x.State, Failure: x.Failure})
		}
	case rpc.AcknowledgeCheckpoint:
		stoppoint.At(stoppoint.Pending) // the first one finds it triggered everywhere, and not complete
		l.step(Checkpointing{checkpointing.Acknowledged{Attempt: x.Attempt, Checkpoint: x.Checkpoint, State: x.State, Metrics: x.Metrics}})
	case rpc.DeclineCheckpoint:
		l.step(Checkpointing{checkpointing.Declined{Attempt: x.Attempt, Checkpoint: x.Checkpoint, Reason: x.Reason, Message: x.Message}})
	case rpc.EndOfData:
		l.step(DataEnded{Attempt: x.Attempt})
	case rpc.BarrierSent:
		l.step(Coordination{Operator: x.Operator, Event: opcoord.BarrierSent{Attempt: x.Attempt, Checkpoint: x.Checkpoint}})
	case rpc.OperatorEvent:
		l.step(Coordination{Operator: x.Operator, Event: opcoord.EventReceived{Attempt: x.Attempt, Event: x.Event}})
	case rpc.OperatorEventAck:
		if l.core == nil {
			return
		}
		if op, ok := l.core.sourceAt(x.Attempt.Vertex); ok {
			l.step(Coordination{Operator: op, Event: opcoord.EventConfirmed{Attempt: x.Attempt, Seq: x.Seq, Error: x.Error}})
		}
	default:
		l.log.Warn("unexpected message", zap.String("message", messageText(m)))
	}
}

// finished says whether the job has ended and everything is written down.
func (l *loop) finished() bool {
	return l.status.terminalWritten && l.calls == 0
}

// report is what is known of the job.
func (l *loop) report() Report {
	r := Report{Job: l.m.record, Started: l.m.record.Submitted, Ended: l.ended, Spec: l.spec, Body: l.body}
	if l.core == nil {
		r.View = View{Status: rpc.JobInitializing, Detail: l.waitsFor, Restarts: int(l.m.first.Restarts)}
		if !l.ended.IsZero() {
			r.View.Status, r.View.Detail = l.status.want.Status, l.status.want.Detail
			r.View.Failure = l.status.want.Failure
		}
		return r
	}
	r.View = l.core.View(time.Now())
	r.Stats, r.Hosts = maps.Clone(l.stats), maps.Clone(l.hosts)
	return r
}

// shown is what outsiders are shown. A final status is one only once it is recorded: a
// leader that was overtaken without knowing may believe that the job has failed, when
// another one runs it.
func (l *loop) shown() Report {
	r := l.report()
	if l.status.terminalWritten {
		return r
	}
	switch r.View.Status {
	case rpc.JobFailed:
		r.View.Status = rpc.JobFailing
	case rpc.JobCanceled:
		r.View.Status = rpc.JobCancelling
	case rpc.JobFinished:
		r.View.Status = rpc.JobRunning
	default:
		return r
	}
	r.Ended = time.Time{}
	return r
}

// statusWriter is the job's status on its way into the registry: one write at a time,
// the newest status next.
type statusWriter struct {
	want            SetStatus
	dirty           bool // want is to be written
	busy            bool // a write is under way
	terminalWritten bool
}

// setStatus takes a new status to be written.
func (l *loop) setStatus(s SetStatus) {
	l.status.want, l.status.dirty = s, true
	l.writeStatus()
}

// statusRetryPause is the time between attempts to write a status.
const statusRetryPause = time.Second

func (l *loop) writeStatus() {
	if !l.status.dirty || l.status.busy || l.status.terminalWritten {
		return
	}
	l.status.dirty, l.status.busy = false, true
	want := l.status.want
	record := ha.JobStatus{
		State: want.Status.String(), Terminal: want.Status.Final(), Since: time.Now(),
		Restarts: int64(want.Restarts), Failure: want.Failure,
	}
	if record.Terminal {
		record.Result = encodeResult(l.report())
	}
	l.deps.Pools.storage.do(func(ctx context.Context) {
		err := l.deps.Jobs.SetStatus(ctx, l.m.record.Job, record)
		l.m.inbox.Post(statusWritten{terminal: record.Terminal, err: err})
	})
}

func (l *loop) statusWritten(x statusWritten) {
	l.status.busy = false
	switch {
	case errors.Is(x.err, ha.ErrNotLeader):
		l.overtaken(x.err)
		return
	case x.err != nil && !errors.Is(x.err, ha.ErrTerminal):
		l.log.Warn("job status not written; will try again", zap.Error(x.err))
		l.status.dirty = true
		l.m.group.AfterFunc("job/status", statusRetryPause, func(context.Context) { l.m.inbox.Post(statusRetry{}) })
		return
	case x.terminal && !l.status.terminalWritten:
		l.status.terminalWritten = true
		l.final = l.report()
		l.answerEnded()
		l.deps.Metrics.Forget(l.m.record.Job)
		l.deps.Ended(l.m.record.Job, l.final)
		l.discardEnded(l.final.Status)
		return
	}
	l.writeStatus()
}

// overtaken ends the loop because another leader acts for the job.
func (l *loop) overtaken(cause error) {
	l.log.Warn("another leader acts for the job", zap.Error(cause))
	l.deps.Overtaken(cause)
	l.m.group.Cancel(cause)
}
