package sim

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore/faulty"
	"github.com/weirflow/weir/jobmanager"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/localfs"
	"github.com/weirflow/weir/netstack"
	"github.com/weirflow/weir/statebackend"
	"github.com/weirflow/weir/statebackend/heap"
	"github.com/weirflow/weir/taskmanager"
)

// process is a host on which one instance of a program runs at a time.
type process struct {
	name        string
	files       *localfs.Memory
	number      int // of instances so far
	restartAt   time.Time
	pausedUntil time.Time
	trouble     map[Kind]time.Time // until when
	alive       atomic.Pointer[instance]
}

// instance is one run of a process, until it is killed or stopped.
type instance struct {
	p     *process
	dead  atomic.Bool
	files *localfs.Process
	blobs *faulty.Store
	jm    *jobmanager.JobManager
	reg   *ha.MemoryClient
	tm    *taskmanager.TaskManager
	stack *netstack.Stack
	pages *heap.PagePool

	mu struct {
		sync.Mutex
		sessions []*sessionEnd
	}
}

func newProcess(name string) *process {
	return &process{name: name, files: localfs.NewMemory(), trouble: make(map[Kind]time.Time)}
}

func (p *process) running() *instance { return p.alive.Load() }
func (p *process) dead() bool         { return p.alive.Load() == nil }

func (i *instance) addSession(e *sessionEnd) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.mu.sessions = append(i.mu.sessions, e)
}

func (i *instance) sessions() []*sessionEnd {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]*sessionEnd(nil), i.mu.sessions...)
}

// codeID is what all processes run.
const codeID = "sim"

// start starts a process anew.
func (w *World) start(p *process) {
	p.number++
	i := &instance{p: p, files: p.files.Process()}
	i.blobs = faulty.New(w.disk, w.diskHook(i))
	var err error
	if p.isJobManager() {
		err = w.startJobManager(i)
	} else {
		err = w.startTaskManager(i)
	}
	if err != nil {
		w.fail("start %s: %v", p.name, err)
	}
	p.alive.Store(i)
	w.trace("start", "%s, instance %d", p.name, p.number)
}

func (p *process) isJobManager() bool { return p.name[0] == 'j' }

func (w *World) startJobManager(i *instance) (err error) {
	i.reg = w.registry.Connect(i.p.name, w.registryHook(i))
	i.jm, err = jobmanager.New(jobmanager.Config{
		ClusterID: "sim", CandidateID: fmt.Sprintf("%s.%d", i.p.name, i.p.number), Advertise: i.p.name, CodeID: codeID,
		Catalog: w.catalog, Registry: i.reg, Blobs: i.blobs, Logger: w.logger.Named(i.p.name),
		HeartbeatInterval: w.Plan.HeartbeatInterval, HeartbeatTimeout: w.Plan.HeartbeatTimeout, Random: w.random(),
	})
	if err != nil {
		return err
	}
	return i.jm.Start(context.Background())
}

func (w *World) startTaskManager(i *instance) error {
	id, err := taskManagerID(i.files, w.rng.Uint64())
	if err != nil {
		return err
	}
	i.pages = heap.NewPagePool(1 << 20)
	run := weir.Incarnation(w.rng.Uint64())
	i.stack, err = netstack.New(netstack.Options{
		TaskManager: id, Incarnation: run, Cluster: "sim", Listen: i.p.name + ":0",
		Transport: transport{w.network.Host(i.p.name), i}, Memory: w.Plan.Memory, Logger: w.logger.Named(i.p.name),
	})
	if err != nil {
		return err
	}
	if err := i.stack.Start(context.Background()); err != nil {
		return err
	}
	i.tm, err = taskmanager.New(taskmanager.Options{
		ID: id, Incarnation: run, CodeID: codeID, Slots: w.Plan.Slots, Host: i.p.name, Memory: w.Plan.Memory,
		Catalog: w.catalog, Stack: i.stack, Store: i.blobs, Dialer: dialer{w, i}, Logger: w.logger.Named(i.p.name),
		Backends: map[string]statebackend.Factory{heap.Name: heap.NewFactory(i.pages)},
		Escalate: func(a weir.AttemptID, err error) { w.wrong("%s: attempt %s does not stop: %v", i.p.name, a, err) },
	})
	if err != nil {
		return err
	}
	return i.tm.Start(context.Background())
}

// taskManagerID is kept in the data directory, as the daemon keeps it.
func taskManagerID(files localfs.FS, fresh uint64) (id weir.TaskManagerID, err error) {
	text, err := localfs.ReadOrCreate(files, "taskmanager-id", func() []byte {
		var id weir.TaskManagerID
		for i := range id {
			id[i] = byte(fresh >> (i % 8 * 8))
		}
		return []byte(id.String())
	})
	if err != nil {
		return id, err
	}
	return weir.ParseTaskManagerID(string(text))
}

// kill ends a process in this step: its seams are cut and its calls fail. What is left
// of it must then end by itself. If silent, its peers are told nothing.
func (w *World) kill(p *process, silent bool, k Kind) bool {
	if p == nil || p.dead() {
		return false
	}
	i := p.running()
	w.fault(k, "%s", p.name)
	switch pending, linked := w.oracle.moments(); {
	case linked != 0 && p == w.oracle.leader():
		w.marks.add(MarkKillLinked)
	case pending != 0:
		w.marks.add(MarkKillPending)
	}
	p.alive.Store(nil)
	p.restartAt = w.now().Add(w.duration(20*time.Millisecond, 4*time.Second))
	p.pausedUntil = time.Time{}
	clear(p.trouble)
	i.dead.Store(true)
	for _, e := range i.sessions() {
		if !silent {
			w.breakOff(e)
		}
		e.shut()
		e.tell(errBroken)
	}
	i.blobs.Kill()
	i.files.Kill()
	if i.reg != nil {
		i.reg.Kill()
	}
	w.network.Kill(p.name)
	w.dropPipes(func(q *pipe) bool { return q.topic == topicData && (q.from == p.name || q.to == p.name) })
	w.end(i, time.Second)
	return true
}

// abandon ends everything without asking for anything, so that a life that failed
// leaves no goroutine in its bubble.
func (w *World) abandon() {
	for _, p := range append(w.jms[:len(w.jms):len(w.jms)], w.tms...) {
		i := p.running()
		if i == nil {
			continue
		}
		i.dead.Store(true)
		i.blobs.Kill()
		if i.reg != nil {
			i.reg.Kill()
		}
		w.network.Kill(p.name)
		w.end(i, time.Minute)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	w.group.Cancel(errStopped)
	if err := w.group.Stop(ctx); err != nil {
		w.t.Logf("after the failure: %v", err)
	}
}

// end waits, on a goroutine of its own, until an instance has ended.
func (w *World) end(i *instance, bound time.Duration) {
	began := w.now()
	err := w.group.Go("end/"+i.p.name, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		err := i.close(ctx)
		if took := time.Since(began); took > bound {
			w.wrong("%s took %s to end: %v", i.p.name, took, err)
		}
		if errors.Is(err, context.DeadlineExceeded) {
			w.wrong("%s does not end: %v", i.p.name, err)
		}
		i.leaks(w)
		return nil
	})
	if err != nil {
		w.t.Logf("end %s: %v", i.p.name, err)
	}
}

// close ends what runs in an instance.
func (i *instance) close(ctx context.Context) error {
	if i.jm != nil {
		return errors.Join(i.jm.Stop(ctx), i.reg.Close())
	}
	return errors.Join(i.tm.Close(ctx), i.stack.Close(ctx))
}

// leaks finds what an ended instance has not given back.
func (i *instance) leaks(w *World) {
	if i.stack == nil {
		return
	}
	if s := i.stack.Stats(); s.UsedBuffers != 0 || s.Connections != 0 {
		w.wrong("%s ended with %d of %d buffers in use and %d connections", i.p.name, s.UsedBuffers, s.TotalBuffers, s.Connections)
	}
	if s := i.pages.Stats(); s.InUse != 0 {
		w.wrong("%s ended with %d pages of state in use", i.p.name, s.InUse)
	}
}

// paused says whether a host is paused. Hosts' times are the root goroutine's.
func (w *World) paused(host string) bool {
	for _, p := range append(w.jms[:len(w.jms):len(w.jms)], w.tms...) {
		if p.name == host {
			return w.now().Before(p.pausedUntil)
		}
	}
	return false
}

// someRunning lets the seed choose a running process, or returns nil.
func (w *World) someRunning(of []*process) *process {
	var up []*process
	for _, p := range of {
		if !p.dead() {
			up = append(up, p)
		}
	}
	if len(up) == 0 {
		return nil
	}
	return oneOf(w.rng, up...)
}

// twoHosts lets the seed choose two hosts, of which at most one is a JobManager's.
func (w *World) twoHosts() (a, b string) {
	hosts := append(w.jms[:len(w.jms):len(w.jms)], w.tms...)
	first := oneOf(w.rng, w.tms...).name
	second := first
	for second == first {
		second = oneOf(w.rng, hosts...).name
	}
	if w.rng.IntN(2) == 0 {
		return second, first
	}
	return first, second
}

// cutUntil breaks all connections between two hosts.
func (w *World) cutUntil(a, b string, until time.Time) {
	w.cuts[direction{a, b}] = until
	w.network.Cut(a, b)
	between := func(from, to string) bool { return from == a && to == b || from == b && to == a }
	w.dropPipes(func(p *pipe) bool { return p.topic == topicData && between(p.from, p.to) })
	for _, p := range w.tms {
		i := p.running()
		if i == nil {
			continue
		}
		for _, e := range i.sessions() {
			if between(p.name, e.other.by.p.name) {
				w.breakOff(e)
			}
		}
	}
}

// reachable says whether a new connection can be made.
func (w *World) reachable(a, b string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, cut := w.cuts[direction{a, b}]
	_, back := w.cuts[direction{b, a}]
	return !cut && !back && !w.blocked(a, b) && !w.blocked(b, a)
}
