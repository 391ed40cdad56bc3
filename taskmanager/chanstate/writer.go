package chanstate

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/assert"
)

// noMember is to blame for nothing.
const noMember Member = -1

// Writer decides what becomes of a group's channel state. Callers hold the group's
// lock. It knows how many bytes were captured, not the bytes.
type Writer struct {
	memory  int64                        // at most that many captured bytes
	held    int64                        // captured bytes that are not written yet
	members map[Member]weir.CheckpointID // the last checkpoint that each started

	// newest is the newest checkpoint that was started. Only it captures; older ones
	// may still be being written.
	newest weir.CheckpointID
	files  map[weir.CheckpointID]*file
	// failed is why the newest checkpoint failed, for who starts it after that.
	failed failure
	// aborted is the newest checkpoint that was aborted.
	aborted weir.CheckpointID
	abort   failure
}

// failure is a cause and whose it is.
type failure struct {
	by    Member // noMember: nobody's of the group
	cause error  // an *Error; nil: there is no failure
}

// file is what the subtasks of the group have of one checkpoint.
type file struct {
	id weir.CheckpointID
	// awaited are the subtasks that have not started, of those that the group had when
	// the first did.
	awaited map[Member]bool
	parts   map[Member]*part
	sealed  bool // all is captured: Commit follows the last Wrote
}

// part is a subtask's share of a file.
type part struct {
	done     [2]bool // by side
	bytes    int64
	put      bool // handed over for writing
	written  bool
	answered bool // or left: there is nobody to answer
}

func (p *part) finished() bool { return p.done[InputSide] && p.done[OutputSide] }

// NewWriter returns the writer of a group that has no subtasks yet. memory bounds what
// it holds, in bytes.
func NewWriter(memory int64) *Writer {
	return &Writer{memory: memory, members: map[Member]weir.CheckpointID{}, files: map[weir.CheckpointID]*file{}}
}

// Held is how many captured bytes are held.
func (w *Writer) Held() int64 { return w.held }

// fail ends a checkpoint: the one to blame is given the cause, others only that the file
// they share is lost.
func (w *Writer) fail(f *file, why failure) []Action {
	if f.id == w.newest {
		w.failed = why
	}
	delete(w.files, f.id)
	var acts []Action
	for _, m := range slices.Sorted(maps.Keys(f.parts)) {
		p := f.parts[m]
		if !p.put {
			w.held -= p.bytes
		}
		if !p.answered {
			acts = append(acts, Answer{m, f.id, why.of(m)})
		}
	}
	return append(acts, Drop{f.id})
}

// of is the failure as a member is told of it.
func (f failure) of(m Member) error {
	if m == f.by || f.by == noMember {
		return f.cause
	}
	return &Error{weir.ChannelStateSharedStreamException, fmt.Errorf("%w: %w", errShared, errors.Unwrap(f.cause))}
}

// because is a member's failure.
func because(m Member, reason weir.FailureReason, cause error) failure {
	var known *Error
	if errors.As(cause, &known) {
		return failure{m, known}
	}
	return failure{m, &Error{reason, cause}}
}

// subsumed is the failure of a checkpoint that is older than another.
func subsumed() failure {
	return because(noMember, weir.CheckpointDeclinedSubsumed, errSubsumed)
}

// settle goes on with a file when something of it is done: it is complete when nobody is
// awaited and all parts are finished, and is committed when all is written. Without
// bytes there is no file.
func (w *Writer) settle(f *file, acts []Action) []Action {
	if len(f.awaited) > 0 || f.sealed {
		return acts
	}
	empty := true
	for _, p := range f.parts {
		if !p.finished() || p.put && !p.written {
			return acts
		}
		empty = empty && p.bytes == 0
	}
	if empty {
		delete(w.files, f.id)
		return acts
	}
	f.sealed = true
	return append(acts, Commit{f.id})
}

// check asserts what must hold between two steps.
func (w *Writer) check() {
	if !assert.Enabled {
		return
	}
	assert.That(w.held >= 0 && w.held <= w.memory, "%d bytes are held, at most %d fit", w.held, w.memory)
	captured := int64(0)
	for id, f := range w.files {
		assert.That(id == f.id && id <= w.newest && id > w.aborted, "file %d, newest is %d, aborted %d", id, w.newest, w.aborted)
		assert.That(!f.sealed || len(f.awaited) == 0, "file %d is complete and somebody awaited", id)
		for m, p := range f.parts {
			assert.That(!f.awaited[m], "s%d has started %d and is awaited", m, id)
			assert.That(p.put == (p.finished() && p.bytes > 0), "s%d of %d: finished %t, %d bytes, put %t", m, id, p.finished(), p.bytes, p.put)
			assert.That(id == w.newest || p.finished(), "s%d captures for %d, newest is %d", m, id, w.newest)
			if !p.put {
				captured += p.bytes
			}
		}
	}
	assert.That(captured <= w.held, "%d bytes are captured, %d held", captured, w.held)
}
