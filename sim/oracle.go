package sim

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/snapshotmeta"
)

// Oracle knows what must hold, and looks whether it does. It reads the registry and
// the disk directly, as nobody else can. What the seams call may run on any goroutine.
type Oracle struct {
	w      *World
	reg    *ha.MemoryClient
	source ha.JobStore

	// Root's own.
	checked map[uint64]*checkedLink // retained links that were read, by number

	mu struct {
		sync.Mutex
		request  string     // that makes the job
		job      weir.JobID // zero until it is recorded
		leading  *instance
		changed  bool                                       // the chain may have another link, or the disk a file less
		linked   map[weir.CheckpointID]ha.Link              // every link there ever was
		aborted  map[weir.CheckpointID]bool                 // somebody was told so
		deployed map[weir.AttemptID]bool                    // attempts that were sent to a TaskManager, of all jobs
		attempts int                                        // how many, of the job
		newest   weir.CheckpointID                          // the newest link
		claimed  weir.CheckpointID                          // another job's, that this one has claimed; 0: none
		pending  weir.CheckpointID                          // triggered, and neither linked nor aborted
		silent   weir.CheckpointID                          // linked, and nobody was told yet
		states   map[weir.CheckpointID]rpc.CheckpointStatus // as shown to clients
		takers   map[weir.CheckpointID]weir.LeaderEpoch     // who triggered a checkpoint
		runs     map[weir.CheckpointID]int                  // how many attempts had been deployed when it was triggered
		epochs   map[*instance]weir.LeaderEpoch             // that TaskManagers have been registered with, as of the last step
		heard    map[*instance]weir.LeaderEpoch             // and since
		started  map[weir.AttemptID]bool
		still    stillness
		kept     map[weir.CheckpointID]ha.Link // savepoints of the job that clients were told of
	}

	// exact is the newest checkpoint that has the whole answer; 0: none yet.
	exact weir.CheckpointID
	links int // how many were checked
}

func newOracle(w *World) *Oracle {
	o := &Oracle{w: w, reg: w.registry.Connect("oracle", ha.Hook{})}
	o.source = *ha.NewJobStore(o.reg, 0)
	o.mu.deployed = make(map[weir.AttemptID]bool)
	o.mu.started = make(map[weir.AttemptID]bool)
	o.mu.epochs = make(map[*instance]weir.LeaderEpoch)
	o.mu.heard = make(map[*instance]weir.LeaderEpoch)
	return o
}

// begin turns to the job that a request makes, and that resumes from a checkpoint.
func (o *Oracle) begin(request string, from weir.CheckpointID) {
	o.checked, o.exact = make(map[uint64]*checkedLink), 0
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.request, o.mu.job, o.mu.changed, o.mu.attempts = request, weir.JobID{}, false, 0
	o.mu.linked = make(map[weir.CheckpointID]ha.Link)
	o.mu.aborted = make(map[weir.CheckpointID]bool)
	o.mu.takers = make(map[weir.CheckpointID]weir.LeaderEpoch)
	o.mu.runs = make(map[weir.CheckpointID]int)
	o.mu.states = make(map[weir.CheckpointID]rpc.CheckpointStatus)
	o.mu.kept = make(map[weir.CheckpointID]ha.Link)
	o.mu.newest, o.mu.pending, o.mu.silent = from, 0, 0
}

// moments returns the checkpoint that is pending, and the one that is linked without
// anybody having been told; 0: none.
func (o *Oracle) moments() (pending, linked weir.CheckpointID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mu.pending, o.mu.silent
}

// leads notes who won the election last.
func (o *Oracle) leads(by *instance) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.leading = by
	o.mu.pending, o.mu.silent = 0, 0
}

// leader is the process that leads, or nil.
func (o *Oracle) leader() *process {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.leading == nil || o.mu.leading.dead.Load() {
		return nil
	}
	return o.mu.leading.p
}

// short leaves the job's id out of a line, so that lines of several runs are alike.
func (o *Oracle) short(line string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.job.IsZero() {
		return line
	}
	id := o.mu.job.String()
	return strings.ReplaceAll(strings.ReplaceAll(line, id, "JOB"), id[:8], "JOB")
}

// registryChanged is called right after a transaction had effect, before its caller
// hears of it: from now on a link counts, whatever happens to the answer.
func (o *Oracle) registryChanged() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.changed = true
	ctx := context.Background()
	if o.mu.job.IsZero() {
		jobs, err := o.source.Jobs(ctx)
		at := slices.IndexFunc(jobs, func(j ha.Job) bool { return j.Record.RequestID == o.mu.request })
		if err != nil || at < 0 {
			return
		}
		o.mu.job = jobs[at].Record.Job
	}
	links, err := o.source.Links(ctx, o.mu.job)
	if err != nil {
		o.w.wrong("chain: %v", err)
		return
	}
	for _, l := range links {
		if _, known := o.mu.linked[l.Checkpoint]; known {
			continue
		}
		o.mu.linked[l.Checkpoint] = l
		if l.Checkpoint == o.mu.claimed {
			o.w.note("link", "checkpoint %d, which was claimed, is link %d of the chain", l.Checkpoint, l.Number)
			continue
		}
		if l.Checkpoint <= o.mu.newest {
			o.w.wrong("checkpoint %d became a link after %d", l.Checkpoint, o.mu.newest)
		}
		if n := o.mu.runs[l.Checkpoint]; n != o.mu.attempts {
			o.w.wrong("checkpoint %d became a link, and %d attempts were deployed from an older one since it was triggered", l.Checkpoint, o.mu.attempts-n)
		}
		if o.mu.aborted[l.Checkpoint] {
			o.w.wrong("checkpoint %d became a link after somebody was told that it was aborted", l.Checkpoint)
		}
		o.mu.newest, o.mu.silent, o.mu.pending = l.Checkpoint, l.Checkpoint, 0
		o.w.note("link", "checkpoint %d is link %d of the chain", l.Checkpoint, l.Number)
	}
	if n := len(links); n > 0 && links[n-1].Checkpoint != o.mu.newest {
		o.w.wrong("the newest link was checkpoint %d, and is now %d", o.mu.newest, links[n-1].Checkpoint)
	}
}

// deleted notes that a blob is gone.
func (o *Oracle) deleted(string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.changed = true
}

// sent looks at a message that a process sends.
func (o *Oracle) sent(by *instance, m rpc.Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch m := m.(type) {
	case rpc.Heartbeat:
		o.mu.still.beat(by, o.w.now(), m.Tasks)
		if newest := o.mu.epochs[by]; m.Epoch < newest {
			o.w.wrong("%s follows a leader of epoch %d, and one of %d had registered it", by.p.name, m.Epoch, newest)
		}
	case rpc.TaskStateChanged:
		o.startedLocked(by, m)
	case rpc.TriggerCheckpoint:
		if m.Attempt.Job != o.mu.job {
			return
		}
		if epoch, taken := o.mu.takers[m.Barrier.ID]; taken && epoch != m.Attempt.Epoch {
			o.w.wrong("checkpoint %d is triggered in epoch %d and was in %d", m.Barrier.ID, m.Attempt.Epoch, epoch)
		}
		if o.mu.takers[m.Barrier.ID] = m.Attempt.Epoch; o.mu.runs[m.Barrier.ID] == 0 {
			o.mu.runs[m.Barrier.ID] = o.mu.attempts
		}
		if o.mu.pending != m.Barrier.ID && o.mu.linked[m.Barrier.ID].Number == 0 {
			o.mu.pending = m.Barrier.ID
			o.mu.still.asks(o.w.now())
		}
	case rpc.NotifyCheckpointAborted:
		if m.Attempt.Job != o.mu.job {
			return
		}
		o.mu.aborted[m.Checkpoint] = true
		if o.mu.pending == m.Checkpoint {
			o.mu.pending = 0
		}
		if o.mu.linked[m.Checkpoint].Number != 0 {
			o.w.wrong("%s tells that checkpoint %d was aborted, which is a link", by.p.name, m.Checkpoint)
		}
	case rpc.NotifyCheckpointComplete:
		if m.Attempt.Job != o.mu.job {
			return
		}
		if o.mu.silent == m.Checkpoint {
			o.mu.silent = 0
		}
		if o.mu.linked[m.Checkpoint].Number == 0 {
			o.w.wrong("%s tells that checkpoint %d is complete, which is no link", by.p.name, m.Checkpoint)
		}
	case rpc.Deploy:
		o.deployedLocked(by, m.Deployment)
	default: // no other message bears on what is watched
	}
}

// deployedLocked looks at a deployment: it resumes from the newest link, under a number that
// was not used.
func (o *Oracle) deployedLocked(by *instance, d rpc.TaskDeployment) {
	if o.mu.deployed[d.Attempt] {
		o.w.wrong("%s deploys attempt %s a second time", by.p.name, d.Attempt)
	}
	o.mu.deployed[d.Attempt] = true
	if d.RestoredFrom > 0 {
		o.w.mark(MarkRestored)
	}
	if d.Attempt.Job != o.mu.job {
		return // by one who does not know that the job is over
	}
	o.mu.attempts++
	o.mu.still.restarts()
	leader, err := o.reg.Leader(context.Background())
	if err != nil || leader.Epoch != d.Attempt.Epoch {
		return // overtaken, and does not know it: its deployments are refused, or end with it
	}
	if d.RestoredFrom != o.mu.newest {
		o.w.wrong("%s deploys %s from checkpoint %d, the newest link is %d", by.p.name, d.Attempt, d.RestoredFrom, o.mu.newest)
	}
}

// startedLocked looks at an attempt that starts: a TaskManager starts none for a leader
// older than the newest that has registered it.
func (o *Oracle) startedLocked(by *instance, m rpc.TaskStateChanged) {
	if m.State != rpc.TaskInitializing || o.mu.started[m.Attempt] {
		return
	}
	o.mu.started[m.Attempt] = true
	if newest := o.mu.epochs[by]; m.Attempt.Epoch < newest {
		o.w.wrong("%s starts %s after a leader of epoch %d has registered it", by.p.name, m.Attempt, newest)
	}
}

// received looks at a message that arrives.
func (o *Oracle) received(by *instance, m rpc.Message) {
	if r, ok := m.(rpc.Registered); ok {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.mu.heard[by] = max(o.mu.heard[by], r.Epoch)
	}
}

// told notes that user code was told of a checkpoint's end.
func (o *Oracle) told(id weir.CheckpointID, complete bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if link := o.mu.linked[id]; (link.Number != 0) != complete {
		o.w.wrong("an operator is told that checkpoint %d is complete: %v; it is link %d", id, complete, link.Number)
	}
}

// shown compares what clients are shown with what they were shown before.
func (o *Oracle) shown(list rpc.CheckpointList) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range list.Recent {
		was, known := o.mu.states[c.ID]
		if known && was != rpc.CheckpointPending && was != c.Status {
			o.w.wrong("checkpoint %d was shown as %s and is now %s", c.ID, was, c.Status)
		}
		if c.Kind.IsSavepoint() && !c.Kind.IsSynchronous() {
			continue // it never has a link
		}
		if c.Status == rpc.CheckpointCompleted && o.mu.linked[c.ID].Number == 0 {
			o.w.wrong("checkpoint %d is shown as complete and is no link", c.ID)
		}
		o.mu.states[c.ID] = c.Status
	}
}

// look checks the retained links, if something has changed. For the root goroutine.
func (o *Oracle) look() {
	o.mu.Lock()
	changed, job := o.mu.changed, o.mu.job
	o.mu.changed = false
	maps.Copy(o.mu.epochs, o.mu.heard)
	o.mu.Unlock()
	if !changed || job.IsZero() {
		return
	}
	links, err := o.source.Links(context.Background(), job)
	if err != nil {
		o.w.fail("chain: %v", err)
	}
	retained := make(map[uint64]*checkedLink)
	for _, l := range links {
		c := o.checked[l.Number]
		if c == nil {
			if c, err = o.read(job, l); err != nil {
				o.w.fail("checkpoint %d, link %d of the chain: %v", l.Checkpoint, l.Number, err)
			}
			o.links++
			if c.whole {
				o.exact = l.Checkpoint
			}
		}
		retained[l.Number] = c
		for _, name := range c.files {
			if _, err := o.w.disk.Stat(context.Background(), name); err != nil {
				o.w.fail("checkpoint %d, link %d of the chain, refers to a file: %v", l.Checkpoint, l.Number, err)
			}
		}
	}
	o.checked = retained
}

// last is the newest checkpoint that is complete.
func (o *Oracle) last() weir.CheckpointID {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mu.newest
}

// covered says whether the newest checkpoint has all numbers.
func (o *Oracle) covered() bool {
	o.look()
	newest := slices.Max(slices.Collect(maps.Keys(o.checked)))
	return o.checked[newest].end
}

// files are the files of the newest link.
func (o *Oracle) files() []string {
	newest := slices.Max(slices.Collect(maps.Keys(o.checked)))
	return o.checked[newest].files
}

// orphans are blobs that no retained link refers to and that were not left for gc: in a
// life in which nothing fails, what was part of a link is deleted when that goes. What
// belongs to a checkpoint that was given up may stay, if the writer of a file never
// heard that it was written (DECISIONS 8, 9).
func (o *Oracle) orphans() []string {
	used := make(map[string]bool)
	for _, c := range o.checked {
		for _, name := range c.files {
			used[name] = true
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if j, err := o.source.Job(context.Background(), o.mu.job); err == nil {
		used[j.Record.Body] = true
	}
	linked := make(map[string]bool)
	for id := range o.mu.linked {
		linked[path.Join(snapshotmeta.JobDir(o.mu.job), snapshotmeta.Dir(id))] = true
	}
	var left []string
	for _, name := range o.w.blobs() {
		if !used[name] && linked[path.Dir(name)] {
			left = append(left, name)
		}
	}
	return left
}

// add adds a file that the link refers to.
func (c *checkedLink) add(name string) {
	if !slices.Contains(c.files, name) {
		c.files = append(c.files, name)
	}
}

// differences names what differs between two sets of tallies, at most a few.
func differences(got, want map[int64]Tally) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if g := got[key]; g.Count != want[key].Count || g.Sum != want[key].Sum {
			all = append(all, fmt.Sprintf("key %d: %d numbers of sum %d, want %d of sum %d", key, g.Count, g.Sum, want[key].Count, want[key].Sum))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[key]; !ok {
			all = append(all, fmt.Sprintf("key %d: %d numbers, want none", key, got[key].Count))
		}
	}
	if n := len(all); n > 4 {
		all = append(all[:4], fmt.Sprintf("and %d more", n-4))
	}
	return strings.Join(all, "; ")
}
