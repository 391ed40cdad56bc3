package chanstate

import (
	"context"
	"fmt"
	"path"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/internal/planted"
	"github.com/weirflow/weir/snapshotmeta"
)

// discardTimeout bounds the deletion of one file.
const discardTimeout = 30 * time.Second

// openFile is a file that the goroutine writes.
type openFile struct {
	name      string // in the store
	w         *snapshotmeta.StateFileWriter
	attempted bool // Commit was called: there may be a file
	channels  map[Member][]weir.ChannelStateHandle
	bytes     map[Member]int64
}

// run is the goroutine: it works until the last subtask has left and all is done, or its
// context ends.
func (w *sharedWriter) run(ctx context.Context) error {
	files := map[weir.CheckpointID]*openFile{}
	defer w.stop(files)
	for ctx.Err() == nil {
		j, ended := w.next()
		switch {
		case j != nil:
			w.do(ctx, files, j)
			continue
		case ended:
			return nil
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
		}
	}
	return nil
}

// next takes a job, or says that there will be none.
func (w *sharedWriter) next() (j *job, ended bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.mu.work) == 0 {
		w.mu.work = nil
		return nil, w.mu.ended
	}
	j = &w.mu.work[0]
	w.mu.work = w.mu.work[1:]
	return j, false
}

func (w *sharedWriter) do(ctx context.Context, files map[weir.CheckpointID]*openFile, j *job) {
	switch a := j.action.(type) {
	case Put:
		err := w.put(ctx, files, a, j)
		j.hold.free()
		w.step(Wrote{a.Member, a.ID, a.Bytes, err})
	case Commit:
		w.commit(ctx, files, a.ID)
	case Drop:
		w.drop(ctx, files, a.ID)
	case Answer:
		w.answer(a.Member, j.result)
	case Keep, Refuse, Note:
	}
}

// put appends what a subtask captured to its checkpoint's file, and makes it if it is
// the first.
func (w *sharedWriter) put(ctx context.Context, files map[weir.CheckpointID]*openFile, a Put, j *job) error {
	ctx, ok := w.io(ctx, a.ID)
	if !ok {
		return errGivenUp
	}
	f := files[a.ID]
	if f == nil {
		o := w.options(a.ID, j.location)
		f = &openFile{
			name: path.Join(o.Dir, o.Name), w: snapshotmeta.NewStateFileWriter(o),
			channels: map[Member][]weir.ChannelStateHandle{}, bytes: map[Member]int64{},
		}
		files[a.ID] = f
	}
	f.bytes[a.Member] = a.Bytes
	j.hold.sort()
	return group.Catch(func() error {
		for _, e := range j.hold.ends {
			h, err := f.append(ctx, e)
			if err != nil {
				return fmt.Errorf("write channel %s: %w", e.label(), err)
			}
			f.channels[a.Member] = append(f.channels[a.Member], h)
		}
		return nil
	})
}

// append writes what was captured of one end of a channel.
func (f *openFile) append(ctx context.Context, e end) (weir.ChannelStateHandle, error) {
	h := weir.ChannelStateHandle{Edge: e.edge, Side: e.side, Producer: e.producer, Consumer: e.consumer}
	if err := f.w.Begin(ctx, e.label()); err != nil {
		return h, err
	}
	out, err := snapshotmeta.NewChannelStateWriter(f.w)
	if err != nil {
		return h, err
	}
	for i, c := range e.chunks {
		if i > 0 && i == len(e.chunks)-1 && planted.Is(planted.ChunkDropped) {
			break
		}
		if err := out.Chunk(c.base, c.b); err != nil {
			return h, err
		}
	}
	h.Handle, err = f.w.End()
	return h, err
}

func (w *sharedWriter) commit(ctx context.Context, files map[weir.CheckpointID]*openFile, id weir.CheckpointID) {
	ctx, ok := w.io(ctx, id)
	if !ok {
		return // a Drop follows
	}
	f := files[id]
	f.attempted = true
	err := group.Catch(func() error { return f.w.Commit(ctx) })
	defer w.signal()
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.performLocked(w.mu.core.Step(Committed{id, err}), f)
	if w.mu.core.files[id] == nil && err == nil && !w.droppingLocked(id) {
		delete(files, id)
		w.forgetLocked(id)
	}
}

// droppingLocked says whether a Drop of the checkpoint is still to be done.
func (w *sharedWriter) droppingLocked(id weir.CheckpointID) bool {
	for _, j := range w.mu.work {
		if d, ok := j.action.(Drop); ok && d.ID == id {
			return true
		}
	}
	return false
}

// drop removes a file that nobody is told of. What cannot be removed is found by gc.
func (w *sharedWriter) drop(ctx context.Context, files map[weir.CheckpointID]*openFile, id weir.CheckpointID) {
	w.mu.Lock()
	w.forgetLocked(id)
	w.mu.Unlock()
	f := files[id]
	if f == nil {
		return
	}
	delete(files, id)
	f.w.Abort()
	if !f.attempted {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
	defer cancel()
	_ = w.store.Delete(ctx, f.name)
}

// io returns the context of one step of a checkpoint's I/O, which ends when the
// checkpoint is given up. It is not cancelled when the step ends, since a store may use
// it for the whole file.
func (w *sharedWriter) io(ctx context.Context, id weir.CheckpointID) (context.Context, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.core.files[id] == nil {
		return nil, false
	}
	ctx, cancel := context.WithCancelCause(ctx)
	w.mu.cancels[id] = append(w.mu.cancels[id], cancel)
	return ctx, true
}

// forgetLocked ends the contexts of a checkpoint's I/O.
func (w *sharedWriter) forgetLocked(id weir.CheckpointID) {
	for _, cancel := range w.mu.cancels[id] {
		cancel(nil)
	}
	delete(w.mu.cancels, id)
}

// answer tells a subtask, unless it has left.
func (w *sharedWriter) answer(m Member, r Result) {
	w.mu.Lock()
	s := w.mu.members[m]
	w.mu.Unlock()
	if s != nil {
		s.o.Done(r)
	}
}

// stop gives back what is held when the goroutine ends.
func (w *sharedWriter) stop(files map[weir.CheckpointID]*openFile) {
	for _, f := range files {
		f.w.Abort()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.ended = true
	for _, j := range w.mu.work {
		if j.hold != nil {
			j.hold.free()
		}
	}
	w.mu.work = nil
	for _, h := range w.mu.holds {
		h.free()
	}
	clear(w.mu.holds)
	for id := range w.mu.cancels {
		w.forgetLocked(id)
	}
}
