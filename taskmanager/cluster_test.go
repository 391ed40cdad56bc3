package taskmanager_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore/mem"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/netstack"
	"github.com/weirflow/weir/netstack/link"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/rpc/local"
	"github.com/weirflow/weir/statebackend"
	"github.com/weirflow/weir/statebackend/heap"
	"github.com/weirflow/weir/taskmanager"
)

// cluster is TaskManagers in a bubble, with a JobManager that does what the test says.
type cluster struct {
	t        *testing.T
	group    *group.Group
	network  *link.Memory
	store    *mem.Store
	pages    *heap.PagePool
	catalog  *catalog
	epoch    weir.LeaderEpoch // the JobManager's; change it with setEpoch
	term     atomic.Uint64    // the same, for the sessions
	workers  []*worker
	refuse   atomic.Bool // the JobManager cannot be reached
	mute     atomic.Bool // it says nothing
	refusing atomic.Bool // it refuses registrations
	options  func(o *taskmanager.Options)
}

// worker is one TaskManager and what the JobManager hears of it.
type worker struct {
	c       *cluster
	id      weir.TaskManagerID
	stack   *netstack.Stack
	tm      *taskmanager.TaskManager
	stuck   []string
	mu      sync.Mutex
	session rpc.Session
	heard   []rpc.Message
	beats   []rpc.Heartbeat
}

// inCluster runs a test with n TaskManagers of two slots each, and checks that
// nothing is left when it is over.
func inCluster(t *testing.T, n int, options func(o *taskmanager.Options), test func(c *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{
			t: t, group: group.New(t.Context(), "test"), network: link.NewMemory(nil), store: mem.New(),
			pages: heap.NewPagePool(0), catalog: newCatalog(), options: options,
		}
		c.setEpoch(7)
		defer func() { // also after a Fatal, or the bubble would hang
			for _, w := range c.workers {
				w.close()
			}
			if err := c.group.Stop(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		}()
		for i := range n {
			c.start(i)
		}
		synctest.Wait()
		test(c)
	})
}

func (c *cluster) setEpoch(e weir.LeaderEpoch) {
	c.epoch = e
	c.term.Store(uint64(e))
}

func (c *cluster) start(i int) {
	c.t.Helper()
	w := &worker{c: c, id: weir.TaskManagerID{byte(i + 1)}}
	var err error
	w.stack, err = netstack.New(netstack.Options{
		TaskManager: w.id, Incarnation: 1, Cluster: "test", Listen: fmt.Sprintf("tm%d:0", i),
		Transport: c.network.Host(fmt.Sprintf("tm%d", i)), Memory: 8 << 20,
	})
	if err == nil {
		err = w.stack.Start(c.t.Context())
	}
	if err != nil {
		c.t.Fatal(err)
	}
	o := taskmanager.Options{
		ID: w.id, Incarnation: 1, CodeID: "code", Slots: 2, Catalog: c.catalog, Stack: w.stack, Store: c.store,
		Backends: map[string]statebackend.Factory{heap.Name: heap.NewFactory(c.pages)},
		Dialer:   local.NewDialer(c.group, w),
		Escalate: func(_ weir.AttemptID, err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.stuck = append(w.stuck, err.Error())
		},
	}
	if c.options != nil {
		c.options(&o)
	}
	if w.tm, err = taskmanager.New(o); err == nil {
		err = w.tm.Start(c.t.Context())
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.workers = append(c.workers, w)
}

func (w *worker) close() {
	t := w.c.t
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := w.tm.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := w.tm.Close(ctx); err != nil {
		t.Errorf("close again: %v", err)
	}
	if err := w.stack.Close(ctx); err != nil {
		t.Errorf("close the stack: %v", err)
	}
	if used := w.stack.Stats().UsedBuffers; used != 0 {
		t.Errorf("%d buffers are left", used)
	}
}

// Accept is the JobManager's end of a session.
func (w *worker) Accept(context.Context) (rpc.SessionHandler, error) {
	if w.c.refuse.Load() {
		return nil, rpc.ErrNotLeader
	}
	return w, nil
}

// Receive notes what a TaskManager says and answers what must be answered.
func (w *worker) Receive(s rpc.Session, m rpc.Message) {
	w.mu.Lock()
	w.session = s
	if b, ok := m.(rpc.Heartbeat); ok {
		w.beats = append(w.beats, b)
	} else {
		w.heard = append(w.heard, m)
	}
	w.mu.Unlock()
	if w.c.mute.Load() {
		return
	}
	switch m.(type) {
	case rpc.Register:
		if w.c.refusing.Load() {
			w.say(rpc.Refused{Reason: "another incarnation is alive"})
			return
		}
		w.say(rpc.Registered{Epoch: weir.LeaderEpoch(w.c.term.Load()), HeartbeatInterval: time.Second, HeartbeatTimeout: 10 * time.Second})
	case rpc.Heartbeat:
		w.say(rpc.HeartbeatAck{})
	}
}

// Closed notes the end of a session.
func (w *worker) Closed(s rpc.Session, _ error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.session == s {
		w.session = nil
	}
}

// say sends a message to the TaskManager.
func (w *worker) say(m rpc.Message) {
	w.mu.Lock()
	s := w.session
	w.mu.Unlock()
	if s == nil {
		w.c.t.Fatalf("no session to say %T", m)
	}
	if err := s.Send(m); err != nil {
		w.c.t.Errorf("say %T: %v", m, err)
	}
}

// hangUp ends the session, if there is one.
func (w *worker) hangUp() {
	w.mu.Lock()
	s := w.session
	w.mu.Unlock()
	if s != nil {
		s.Close(errors.New("broken"))
	}
}

// escalated is what the TaskManager gave up on.
func (w *worker) escalated() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.stuck)
}

// connected says whether there is a session.
func (w *worker) connected() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.session != nil
}

// take returns what was heard since the last call.
func (w *worker) take() []rpc.Message {
	w.mu.Lock()
	defer w.mu.Unlock()
	heard := w.heard
	w.heard = nil
	return heard
}

// states waits for what follows by itself and returns the reported states of an
// attempt, in order, and its failure.
func (c *cluster) states(a weir.AttemptID, all []rpc.Message) (states []rpc.TaskState, f *weir.Failure) {
	for _, m := range all {
		if s, ok := m.(rpc.TaskStateChanged); ok && s.Attempt == a {
			states = append(states, s.State)
			if s.Failure != nil {
				f = s.Failure
			}
		}
	}
	return states, f
}

func (c *cluster) expectStates(a weir.AttemptID, all []rpc.Message, want ...rpc.TaskState) *weir.Failure {
	c.t.Helper()
	got, f := c.states(a, all)
	if !slices.Equal(got, want) {
		c.t.Errorf("%v: states %v, want %v (failure: %v)", a, got, want, f)
	}
	return f
}

// heard returns what all TaskManagers said, after letting time pass.
func (c *cluster) heard(after time.Duration) (all []rpc.Message) {
	time.Sleep(after)
	synctest.Wait()
	for _, w := range c.workers {
		all = append(all, w.take()...)
	}
	return all
}

// of returns the messages of one type.
func of[M rpc.Message](all []rpc.Message) (some []M) {
	for _, m := range all {
		if x, ok := m.(M); ok {
			some = append(some, x)
		}
	}
	return some
}

// job is a deployed job.
type job struct {
	c     *cluster
	id    weir.JobID
	graph *jobgraph.JobGraph
	text  string
	n     int32
	// edit changes a deployment before it is sent.
	edit func(d *rpc.TaskDeployment)
}

// newJob compiles source(parallelism p) to count(parallelism q).
func (c *cluster) newJob(p, q int) *job {
	c.t.Helper()
	l := logical(p, q)
	g, err := jobgraph.Compile(l, jobgraph.Options{Name: "job", Parallelism: 1})
	if err != nil {
		c.t.Fatal(err)
	}
	return &job{c: c, id: weir.JobID{9}, graph: g, text: l.Text(), n: 1}
}

func (j *job) attempt(vertex, subtask int) weir.AttemptID {
	return weir.AttemptID{Job: j.id, Vertex: int32(vertex), Subtask: int32(subtask), Epoch: j.c.epoch, N: j.n}
}

// workerOf is where a subtask runs: subtask i on TaskManager i.
func (j *job) workerOf(subtask int) *worker { return j.c.workers[subtask%len(j.c.workers)] }

func (j *job) at(subtask int) rpc.Location {
	w := j.workerOf(subtask)
	return rpc.Location{TaskManager: w.id, Incarnation: 1, DataAddress: w.stack.Address()}
}

// deploy deploys all subtasks, with what was acknowledged in a checkpoint, if any.
func (j *job) deploy(from weir.CheckpointID, acks []rpc.AcknowledgeCheckpoint) {
	j.c.t.Helper()
	for v := range j.graph.Vertices {
		for i := range j.graph.Vertices[v].Parallelism {
			d := j.deployment(v, i)
			d.RestoredFrom = from
			for _, a := range acks {
				if a.Attempt.SubtaskID() == d.Attempt.SubtaskID() {
					d.Restore = a.State.Operators
				}
			}
			j.workerOf(i).say(rpc.Deploy{Deployment: d})
		}
	}
}

func (j *job) deployment(v, i int) rpc.TaskDeployment {
	vertex := &j.graph.Vertices[v]
	d := rpc.TaskDeployment{
		Attempt: j.attempt(v, i), JobName: "job", Entrypoint: "job", CodeID: "code",
		GraphHash: j.graph.Hash, GraphText: j.text, Graph: *j.graph, Directory: "job",
		Options: rpc.TaskOptions{
			BufferTimeout: 100 * time.Millisecond, ExclusiveBuffers: 2, FloatingBuffers: 8, BuffersPerOutput: 4,
			CheckpointsAfterTasksFinish: true, StateBackend: heap.Name, InlineThreshold: 1000,
		},
	}
	for _, e := range vertex.Inputs {
		edge := j.graph.Edges[e]
		in := rpc.InputGate{Edge: e, Partitioning: edge.Partitioning}
		for p := range j.graph.Vertices[edge.From].Parallelism {
			in.Channels = append(in.Channels, rpc.InputChannel{Producer: j.attempt(edge.From, p), Subpartition: i, At: j.at(p)})
		}
		d.Inputs = append(d.Inputs, in)
	}
	for _, e := range vertex.Outputs {
		edge := j.graph.Edges[e]
		to := &j.graph.Vertices[edge.To]
		out := rpc.ResultPartition{Edge: e, Partitioning: edge.Partitioning, MaxParallelism: to.MaxParallelism}
		for q := range to.Parallelism {
			out.Consumers = append(out.Consumers, rpc.Consumer{Attempt: j.attempt(edge.To, q), At: j.at(q)})
		}
		d.Outputs = append(d.Outputs, out)
	}
	if j.edit != nil {
		j.edit(&d)
	}
	return d
}

// trigger starts a checkpoint at all sources.
func (j *job) trigger(id weir.CheckpointID) {
	for i := range j.graph.Vertices[0].Parallelism {
		j.workerOf(i).say(rpc.TriggerCheckpoint{Attempt: j.attempt(0, i), Barrier: weir.Barrier{
			ID: id, Options: weir.CheckpointOptions{Location: fmt.Sprintf("chk-%d", id)},
		}})
	}
}

// cancel cancels all subtasks.
func (j *job) cancel() {
	for v := range j.graph.Vertices {
		for i := range j.graph.Vertices[v].Parallelism {
			j.workerOf(i).say(rpc.Cancel{Attempt: j.attempt(v, i)})
		}
	}
}
