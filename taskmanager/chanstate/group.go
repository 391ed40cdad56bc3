package chanstate

import (
	"context"
	"sync"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/internal/assert"
	"github.com/weirflow/weir/snapshotmeta"
)

// sharedWriter is the writer of a group of subtasks: their lock, and the work that waits
// for its goroutine.
type sharedWriter struct {
	founder   weir.AttemptID // names the files
	store     blobstore.Store
	directory string
	subtasks  int           // at most
	wake      chan struct{} // there is work, or an end; holds one

	mu struct {
		sync.Mutex
		core    *Writer
		members map[Member]*Subtask
		next    Member
		ended   bool // the last subtask has left; none joins
		holds   map[holdKey]*hold
		// locations are those of checkpoints that were started, until they end.
		locations map[weir.CheckpointID]string
		work      []job
		// cancels end the I/O of the files that the goroutine has open.
		cancels map[weir.CheckpointID][]context.CancelCauseFunc
	}
}

type holdKey struct {
	member Member
	id     weir.CheckpointID
}

// job is something for the goroutine: an action of its kind, with what belongs to it.
type job struct {
	action   Action // Put, Commit, Drop or Answer
	hold     *hold  // of a Put
	location string // of a Put
	result   Result // of an Answer
}

func newSharedWriter(o Options) *sharedWriter {
	w := &sharedWriter{
		founder: o.Attempt, store: o.Store, directory: o.Directory, subtasks: o.Subtasks,
		wake: make(chan struct{}, 1),
	}
	w.mu.core = NewWriter(o.Memory)
	w.mu.members = map[Member]*Subtask{}
	w.mu.holds = map[holdKey]*hold{}
	w.mu.locations = map[weir.CheckpointID]string{}
	w.mu.cancels = map[weir.CheckpointID][]context.CancelCauseFunc{}
	return w
}

// join takes a subtask in, if there is room.
func (w *sharedWriter) join(s *Subtask) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.ended || len(w.mu.members) >= w.subtasks {
		return false
	}
	s.writer, s.member = w, w.mu.next
	w.mu.next++
	w.mu.members[s.member] = s
	w.mu.core.Step(Join{s.member})
	return true
}

// leave takes a subtask out and says whether it was the last.
func (w *sharedWriter) leave(s *Subtask) bool {
	defer w.signal()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.mu.members, s.member)
	_ = w.performLocked(w.mu.core.Step(Leave{s.member}), nil)
	w.mu.ended = w.mu.ended || len(w.mu.members) == 0
	return w.mu.ended
}

func (w *sharedWriter) start(m Member, id weir.CheckpointID, location string) error {
	defer w.signal()
	w.mu.Lock()
	defer w.mu.Unlock()
	acts := w.mu.core.Step(Start{m, id})
	w.mu.locations[id] = location // forgotten below if there is no file
	return w.performLocked(acts, nil)
}

func (w *sharedWriter) write(ev Write, k endKey, base int64, b []byte) {
	if len(b) == 0 {
		return
	}
	defer w.signal()
	w.mu.Lock()
	defer w.mu.Unlock()
	acts := w.mu.core.Step(ev)
	if _, keep := acts[0].(Keep); !keep {
		_ = w.performLocked(acts, nil)
		return
	}
	key := holdKey{ev.Member, ev.ID}
	h := w.mu.holds[key]
	if h == nil {
		h = &hold{}
		w.mu.holds[key] = h
	}
	h.add(k, base, b)
}

func (w *sharedWriter) step(ev Event) {
	defer w.signal()
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.performLocked(w.mu.core.Step(ev), nil)
}

// performLocked queues what is for the goroutine. done is the file that was committed, if
// that is what the actions follow. It returns what a start is refused with.
func (w *sharedWriter) performLocked(acts []Action, done *openFile) (refused error) {
	for _, a := range acts {
		switch a := a.(type) {
		case Put:
			key := holdKey{a.Member, a.ID}
			w.mu.work = append(w.mu.work, job{action: a, hold: w.mu.holds[key], location: w.mu.locations[a.ID]})
			delete(w.mu.holds, key)
		case Commit:
			w.mu.work = append(w.mu.work, job{action: a})
		case Drop:
			w.dropLocked(a.ID)
			w.mu.work = append(w.mu.work, job{action: a})
		case Answer:
			r := Result{ID: a.ID, Err: a.Err}
			if done != nil {
				r.Channels, r.Bytes = done.channels[a.Member], done.bytes[a.Member]
			}
			w.mu.work = append(w.mu.work, job{action: a, result: r})
		case Refuse:
			refused = a.Err
		case Keep:
			assert.That(false, "bytes to keep that nobody has")
		case Note:
		}
	}
	for id := range w.mu.locations {
		if w.mu.core.files[id] == nil {
			delete(w.mu.locations, id)
		}
	}
	return refused
}

// dropLocked frees what was captured for a checkpoint and ends its I/O.
func (w *sharedWriter) dropLocked(id weir.CheckpointID) {
	for key, h := range w.mu.holds {
		if key.id == id {
			h.free()
			delete(w.mu.holds, key)
		}
	}
	for _, cancel := range w.mu.cancels[id] {
		cancel(errGivenUp)
	}
}

// signal wakes the goroutine, if there is something to do.
func (w *sharedWriter) signal() {
	w.mu.Lock()
	idle := len(w.mu.work) == 0 && !w.mu.ended
	w.mu.Unlock()
	if idle {
		return
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// options are those of a checkpoint's file.
func (w *sharedWriter) options(id weir.CheckpointID, location string) snapshotmeta.StateFileOptions {
	return snapshotmeta.StateFileOptions{
		Store: w.store, Dir: w.directory, Location: location,
		Name: snapshotmeta.ChannelFileName(location, w.founder), Attempt: w.founder, Checkpoint: id,
	}
}
