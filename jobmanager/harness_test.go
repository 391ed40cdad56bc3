package jobmanager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore/mem"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/rpc"
)

const testCode = "code-1"

// world is a cluster's surroundings, that outlive its JobManagers. It lives in one
// bubble; everything is checked to have ended when the test does.
type world struct {
	t        *testing.T
	registry *ha.Memory
	blobs    *mem.Store
	catalog  *testCatalog
	logs     *observer.ObservedLogs
	logger   *zap.Logger
	managers int
}

func newWorld(t *testing.T) *world {
	core, logs := observer.New(zapcore.DebugLevel)
	return &world{t: t, registry: ha.NewMemory(0), blobs: mem.New(), catalog: &testCatalog{}, logs: logs, logger: zap.New(core)}
}

// manager starts a JobManager and returns when it leads.
func (w *world) manager(change ...func(*Config)) *JobManager {
	w.t.Helper()
	jm := w.candidate(change...)
	w.must(jm.AwaitLeading(w.t.Context()))
	return jm
}

// candidate starts a JobManager.
func (w *world) candidate(change ...func(*Config)) *JobManager {
	w.t.Helper()
	w.managers++
	name := fmt.Sprintf("jm%d", w.managers)
	cfg := Config{
		ClusterID: "test", CandidateID: name, Advertise: name + ":1", CodeID: testCode, Catalog: w.catalog,
		Registry: w.registry.Connect(name, ha.Hook{}), Blobs: w.blobs, Logger: w.logger,
	}
	for _, c := range change {
		c(&cfg)
	}
	jm, err := New(cfg)
	w.must(err)
	w.must(jm.Start(w.t.Context()))
	w.t.Cleanup(func() { w.must(jm.Stop(context.Background())) })
	return jm
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// submit submits the job "demo" with this name and options.
func (w *world) submit(jm *JobManager, name string, options ...string) weir.JobID {
	w.t.Helper()
	reply, err := jm.Submit(w.t.Context(), request(name, options...))
	w.must(err)
	return reply.Job
}

// request is a submission; options are key=value.
func request(name string, options ...string) rpc.SubmitRequest {
	r := rpc.SubmitRequest{Entrypoint: "demo", Name: name, RequestID: "request-" + name, Options: map[string]string{}, Params: map[string]string{}}
	for _, o := range options {
		k, v, _ := strings.Cut(o, "=")
		r.Options[k] = v
	}
	return r
}

// await lets time pass until the job has the status.
func (w *world) await(jm *JobManager, job string, want rpc.JobStatus) rpc.JobDetail {
	w.t.Helper()
	var d rpc.JobDetail
	for range 600 {
		synctest.Wait()
		var err error
		if d, err = jm.Get(w.t.Context(), job); err == nil && d.Status == want {
			return d
		}
		time.Sleep(100 * time.Millisecond)
	}
	w.t.Fatalf("job %s is %s (%s), want %s", job, d.Status, d.Detail, want)
	return d
}

// awaitCheckpoints lets time pass until a checkpoint with this id or a later one is
// complete.
func (w *world) awaitCheckpoint(jm *JobManager, job string, id weir.CheckpointID) rpc.CheckpointInfo {
	w.t.Helper()
	for range 600 {
		synctest.Wait()
		list, err := jm.Checkpoints(w.t.Context(), job)
		w.must(err)
		for _, c := range list.Recent {
			if c.Status == rpc.CheckpointCompleted && c.ID >= id {
				return c
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	w.t.Fatalf("no checkpoint %d of %s", id, job)
	return rpc.CheckpointInfo{}
}

func (w *world) wantError(err error, code rpc.Code, parts ...string) {
	w.t.Helper()
	if err == nil || rpc.CodeOf(err) != code {
		w.t.Fatalf("error %v has code %d, want %d", err, rpc.CodeOf(err), code)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			w.t.Errorf("error %q does not say %q", err, p)
		}
	}
}

// fleet is the TaskManagers of a test. They run every task they are given, and
// acknowledge checkpoints.
type fleet struct {
	w  *world
	mu struct {
		sync.Mutex
		tasks    map[weir.AttemptID]*fakeTask // that run
		deployed []rpc.TaskDeployment
		complete []weir.CheckpointID        // notifications heard
		mute     bool                       // does not answer triggers
		stops    map[weir.CheckpointID]bool // synchronous savepoints
		linger   bool                       // tasks do not end when such a one is complete
		refuse   bool                       // tasks decline such a one
	}
}

type fakeTask struct {
	tm *fakeTM
	d  rpc.TaskDeployment
}

// fakeTM is a TaskManager and the session with it.
type fakeTM struct {
	f       *fleet
	reg     rpc.Registration
	handler rpc.SessionHandler

	mu struct {
		sync.Mutex
		sent   []rpc.Message
		closed error
	}
}

var _ rpc.Session = (*fakeTM)(nil)

func (w *world) fleet() *fleet {
	f := &fleet{w: w}
	f.mu.tasks = make(map[weir.AttemptID]*fakeTask)
	f.mu.stops = make(map[weir.CheckpointID]bool)
	return f
}

// join registers a TaskManager with two slots.
func (f *fleet) join(jm *JobManager, id byte, change ...func(*rpc.Register)) *fakeTM {
	f.w.t.Helper()
	handler, err := jm.Accept(f.w.t.Context())
	f.w.must(err)
	r := rpc.Register{Registration: rpc.Registration{
		ID: weir.TaskManagerID{id}, Incarnation: 1, DataAddress: fmt.Sprintf("tm%d:1", id), Host: fmt.Sprintf("host%d", id), CodeID: testCode, Slots: 2,
	}}
	for _, c := range change {
		c(&r)
	}
	tm := &fakeTM{f: f, reg: r.Registration, handler: handler}
	handler.Receive(tm, r)
	synctest.Wait()
	return tm
}

// live keeps a TaskManager's heart beating until the group ends.
func (tm *fakeTM) live(g *group.Group) {
	tm.f.w.must(g.Go("heart", func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(2 * time.Second):
			}
			tm.handler.Receive(tm, rpc.Heartbeat{Tasks: tm.stats()})
		}
	}))
}

func (tm *fakeTM) stats() []rpc.TaskStats {
	tm.f.mu.Lock()
	defer tm.f.mu.Unlock()
	var list []rpc.TaskStats
	for id, t := range tm.f.mu.tasks {
		if t.tm == tm {
			list = append(list, rpc.TaskStats{Attempt: id, RecordsIn: 42})
		}
	}
	return list
}

// hearts is a group for heartbeats that ends with the test.
func (w *world) hearts() *group.Group {
	g := group.New(context.Background(), "hearts")
	w.t.Cleanup(func() { w.must(g.Stop(context.Background())) })
	return g
}

func (tm *fakeTM) Peer() string { return tm.reg.Host }

func (tm *fakeTM) Close(cause error) {
	tm.mu.Lock()
	first := tm.mu.closed == nil
	if first {
		tm.mu.closed = errors.Join(rpc.ErrSessionClosed, cause)
	}
	tm.mu.Unlock()
	if first {
		tm.handler.Closed(tm, cause)
	}
}

// kill ends a TaskManager with its tasks.
func (tm *fakeTM) kill() {
	tm.f.mu.Lock()
	for id, t := range tm.f.mu.tasks {
		if t.tm == tm {
			delete(tm.f.mu.tasks, id)
		}
	}
	tm.f.mu.Unlock()
	tm.Close(errors.New("connection reset"))
}

func (tm *fakeTM) closedBy() error {
	tm.mu.Lock()
	defer tm.mu.Unlock()
	return tm.mu.closed
}

func (tm *fakeTM) messages() []rpc.Message {
	tm.mu.Lock()
	defer tm.mu.Unlock()
	return slices.Clone(tm.mu.sent)
}

// Send is the JobManager's word; the answers come at once.
func (tm *fakeTM) Send(m rpc.Message) error {
	tm.mu.Lock()
	closed := tm.mu.closed
	tm.mu.sent = append(tm.mu.sent, m)
	tm.mu.Unlock()
	if closed != nil {
		return closed
	}
	for _, answer := range tm.f.answers(tm, m) {
		answer.tm.handler.Receive(answer.tm, answer.m)
	}
	return nil
}

type answer struct {
	tm *fakeTM
	m  rpc.Message
}

func (f *fleet) answers(tm *fakeTM, m rpc.Message) []answer {
	f.mu.Lock()
	defer f.mu.Unlock()
	state := func(id weir.AttemptID, s rpc.TaskState) answer {
		return answer{tm, rpc.TaskStateChanged{Attempt: id, State: s}}
	}
	switch x := m.(type) {
	case rpc.Deploy:
		id := x.Deployment.Attempt
		f.mu.tasks[id] = &fakeTask{tm, x.Deployment}
		f.mu.deployed = append(f.mu.deployed, x.Deployment)
		return []answer{state(id, rpc.TaskInitializing), state(id, rpc.TaskRunning)}
	case rpc.Cancel:
		delete(f.mu.tasks, x.Attempt)
		return []answer{state(x.Attempt, rpc.TaskCanceled)}
	case rpc.NotifyCheckpointComplete:
		f.mu.complete = append(f.mu.complete, x.Checkpoint)
		if f.mu.stops[x.Checkpoint] && !f.mu.linger && f.mu.tasks[x.Attempt] != nil {
			delete(f.mu.tasks, x.Attempt)
			return []answer{state(x.Attempt, rpc.TaskFinished)}
		}
	case rpc.TriggerCheckpoint:
		if !f.mu.mute {
			return f.snapshots(x)
		}
	}
	return nil
}

// snapshots are the acknowledgements of all tasks of a job, once the first of its
// sources was triggered.
func (f *fleet) snapshots(x rpc.TriggerCheckpoint) []answer {
	source := f.mu.tasks[x.Attempt]
	if source == nil {
		return nil
	}
	if x.Barrier.Options.Kind.IsSynchronous() {
		if f.mu.refuse {
			return []answer{{source.tm, rpc.DeclineCheckpoint{Attempt: x.Attempt, Checkpoint: x.Barrier.ID, Reason: weir.CheckpointAsyncException, Message: "disk full"}}}
		}
		f.mu.stops[x.Barrier.ID] = true
	}
	op := source.d.Graph.Vertices[x.Attempt.Vertex].IDs[0]
	list := []answer{{source.tm, rpc.BarrierSent{Attempt: x.Attempt, Operator: op, Checkpoint: x.Barrier.ID}}}
	list = append(list, answer{source.tm, f.ack(source, x.Barrier)})
	if x.Attempt.Subtask == 0 {
		for id, t := range f.mu.tasks {
			if id.Job == x.Attempt.Job && id.Vertex != x.Attempt.Vertex {
				list = append(list, answer{t.tm, f.ack(t, x.Barrier)})
			}
		}
	}
	return list
}

func (f *fleet) ack(t *fakeTask, b weir.Barrier) rpc.Message {
	a := rpc.AcknowledgeCheckpoint{Attempt: t.d.Attempt, Checkpoint: b.ID, Metrics: weir.CheckpointMetrics{AlignmentDuration: time.Millisecond}}
	v := &t.d.Graph.Vertices[t.d.Attempt.Vertex]
	for k, op := range v.IDs {
		s := weir.OperatorSubtaskState{Operator: op, Name: v.Operators[k]}
		switch {
		case v.Source && k == 0:
			s.Elements = []weir.StateHandle{inline(fmt.Sprintf("split of %s", t.d.Attempt.SubtaskID()))}
		case v.Keyed && k == 0:
			s.Keyed = []weir.KeyedStateHandle{{
				Range: weir.KeyGroupRangeOf(v.MaxParallelism, v.Parallelism, int(t.d.Attempt.Subtask)), Backend: "heap", Handle: inline("table"),
			}}
		}
		a.State.Operators = append(a.State.Operators, s)
	}
	if b.Options.Alignment == weir.Unaligned {
		f.capture(t, &a)
	}
	return a
}

// capture says that each channel of the task had something in flight.
func (f *fleet) capture(t *fakeTask, a *rpc.AcknowledgeCheckpoint) {
	for _, g := range t.d.Inputs {
		e := &t.d.Graph.Edges[g.Edge]
		for _, ch := range g.Channels {
			h := inline(fmt.Sprintf("%d>%d", ch.Producer.Subtask, t.d.Attempt.Subtask))
			a.State.Channels = append(a.State.Channels, weir.ChannelStateHandle{
				Edge:     weir.EdgeID{From: e.FromOperator, To: e.ToOperator, Input: int32(e.Input)},
				Producer: ch.Producer.Subtask, Consumer: t.d.Attempt.Subtask, Handle: h,
			})
			a.Metrics.PersistedBytes += h.Length
		}
	}
	a.Metrics.Unaligned = true
}

// fail reports the failure of a running task.
func (f *fleet) fail(job weir.JobID, vertex, subtask int32, failure *weir.Failure) {
	f.w.t.Helper()
	f.mu.Lock()
	var found *fakeTask // the newest one: those of a leader that is gone may still be there
	for id, t := range f.mu.tasks {
		if id.Job == job && id.Vertex == vertex && id.Subtask == subtask && (found == nil || id.Epoch > found.d.Attempt.Epoch) {
			found = t
		}
	}
	if found != nil {
		delete(f.mu.tasks, found.d.Attempt)
	}
	f.mu.Unlock()
	if found == nil {
		f.w.t.Fatalf("no task %d[%d] runs", vertex, subtask)
	}
	found.tm.handler.Receive(found.tm, rpc.TaskStateChanged{Attempt: found.d.Attempt, State: rpc.TaskFailed, Failure: failure})
}

// finishAll reports that all tasks of a job have finished.
func (f *fleet) finishAll(job weir.JobID) {
	f.mu.Lock()
	var done []*fakeTask
	for id, t := range f.mu.tasks {
		if id.Job == job {
			done = append(done, t)
			delete(f.mu.tasks, id)
		}
	}
	f.mu.Unlock()
	for _, t := range done {
		t.tm.handler.Receive(t.tm, rpc.TaskStateChanged{Attempt: t.d.Attempt, State: rpc.TaskFinished})
	}
}

// silence keeps the TaskManagers from answering triggers.
func (f *fleet) silence() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.mute = true
}

func (f *fleet) deployments() []rpc.TaskDeployment {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.mu.deployed)
}

func (f *fleet) running() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.mu.tasks)
}

// testCatalog carries one job, "demo", that can misbehave.
type testCatalog struct {
	mu struct {
		sync.Mutex
		builds     int
		random     bool          // builds differ
		block      chan struct{} // builds wait for it
		panics     bool
		enumerator func() operator.Enumerator // default: a good one
		hook       func() operator.MasterHook // default: there is none
	}
}

func (c *testCatalog) Entrypoints() []operator.Entrypoint {
	return []operator.Entrypoint{{Name: "demo"}}
}

func (c *testCatalog) Build(ctx context.Context, entrypoint string, params map[string]string) (operator.Program, error) {
	if entrypoint != "demo" {
		return nil, fmt.Errorf("%w %q; known are: demo", operator.ErrUnknownEntrypoint, entrypoint)
	}
	c.mu.Lock()
	c.mu.builds++
	n, random, block, panics, hooks := c.mu.builds, c.mu.random, c.mu.block, c.mu.panics, c.hooksLocked()
	c.mu.Unlock()
	if panics {
		panic("the builder is broken")
	}
	if block != nil {
		select {
		case <-block:
		case <-ctx.Done():
			return nil, fmt.Errorf("build: %w", context.Cause(ctx))
		}
	}
	count := "count"
	if params["count"] != "" {
		count = params["count"]
	}
	if random {
		count = fmt.Sprintf("count-%d", n)
	}
	return &testProgram{c: c, logical: &jobgraph.Logical{Entrypoint: "demo", Hooks: hooks, Operators: []jobgraph.Operator{
		{Name: "src", Kind: jobgraph.KindSource, Out: "string"},
		{Name: count, Kind: jobgraph.KindProcess, In: "string", Out: "string", States: []jobgraph.State{{Name: "n", Kind: "value", Key: "string", Value: "int64"}},
			Inputs: []jobgraph.Input{{From: "src", Partitioning: jobgraph.Hash, Key: "string", Codec: "string"}}},
		{Name: "sink", Kind: jobgraph.KindSink, In: "string", Inputs: []jobgraph.Input{{From: count, Codec: "string"}}},
	}}}, nil
}

type testProgram struct {
	c       *testCatalog
	logical *jobgraph.Logical
}

func (p *testProgram) Logical() *jobgraph.Logical { return p.logical }
func (p *testProgram) NewChain(*jobgraph.Vertex, *jobgraph.JobGraph) (operator.Chain, error) {
	return nil, errors.New("tasks do not run here")
}

// hooks are the names of the master hooks. The catalog is locked.
func (c *testCatalog) hooksLocked() []string {
	if c.mu.hook == nil {
		return nil
	}
	return []string{"note"}
}

func (p *testProgram) NewHook(string) (operator.MasterHook, error) {
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	return p.c.mu.hook(), nil
}

func (p *testProgram) NewEnumerator(string) (operator.Enumerator, error) {
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	if p.c.mu.enumerator != nil {
		return p.c.mu.enumerator(), nil
	}
	return &testEnumerator{}, nil
}

// testEnumerator assigns one split per reader; its fields make it misbehave.
type testEnumerator struct {
	restored  string
	hang      <-chan struct{} // Start waits for it, whatever its context says
	hangAt    <-chan struct{} // Snapshot does
	panicking bool
	fails     error // of Start
	bulk      int   // bytes of a snapshot
}

func (e *testEnumerator) Start(context.Context, operator.EnumeratorContext) error {
	if e.panicking {
		panic("the enumerator is broken")
	}
	if e.hang != nil {
		<-e.hang
	}
	return e.fails
}
func (e *testEnumerator) Restore(state []byte) error { e.restored = string(state); return nil }
func (e *testEnumerator) Assign(_ context.Context, n int) ([][][]byte, error) {
	splits := make([][][]byte, n)
	for i := range splits {
		splits[i] = [][]byte{fmt.Appendf(nil, "split-%d", i)}
	}
	return splits, nil
}
func (e *testEnumerator) HandleEvent(context.Context, int, []byte) error { return nil }
func (e *testEnumerator) Snapshot(_ context.Context, id int64) ([]byte, error) {
	if e.hangAt != nil {
		<-e.hangAt
	}
	if e.bulk > 0 {
		return make([]byte, e.bulk), nil
	}
	return fmt.Appendf(nil, "enumerated %d", id), nil
}
func (e *testEnumerator) NotifyComplete(int64) {}
func (e *testEnumerator) Close() error         { return nil }

func inline(s string) weir.StateHandle {
	return weir.StateHandle{Inline: []byte(s), Length: int64(len(s)), CRC: checksum(s)}
}
