package chanstate

import (
	"fmt"
	"maps"
	"slices"

	"github.com/weirflow/weir"
)

// Step takes one event and says what to do.
func (w *Writer) Step(ev Event) []Action {
	var acts []Action
	switch ev := ev.(type) {
	case Join:
		w.members[ev.Member] = weir.NoCheckpoint
	case Leave:
		acts = w.onLeave(ev)
	case Start:
		acts = w.onStart(ev)
	case Write:
		acts = w.onWrite(ev)
	case Finish:
		acts = w.onFinish(ev)
	case Abort:
		acts = w.onAbort(ev)
	case Wrote:
		acts = w.onWrote(ev)
	case Committed:
		acts = w.onCommitted(ev)
	}
	w.check()
	if len(acts) == 0 {
		return note("%s", ev)
	}
	return acts
}

func (w *Writer) onStart(ev Start) []Action {
	last, joined := w.members[ev.Member]
	switch {
	case !joined:
		return []Action{Refuse{ErrClosed}}
	case ev.ID == last, w.started(ev.Member, ev.ID):
		return []Action{Refuse{fmt.Errorf("%w: checkpoint %d", ErrRegistered, ev.ID)}}
	}
	w.members[ev.Member] = max(last, ev.ID)
	answer := func(err error) []Action { return []Action{Answer{ev.Member, ev.ID, err}} }
	switch {
	case ev.ID == w.aborted && w.abort.cause != nil:
		return answer(w.abort.of(ev.Member))
	case ev.ID <= w.aborted, ev.ID < w.newest:
		return answer(subsumed().cause)
	case ev.ID > w.newest:
		return w.open(ev)
	}
	f := w.files[ev.ID]
	switch {
	case f == nil && w.failed.cause != nil:
		return answer(w.failed.of(ev.Member))
	case f == nil || f.sealed:
		return answer(&Error{weir.ChannelStateSharedStreamException, ErrLate})
	}
	delete(f.awaited, ev.Member)
	f.parts[ev.Member] = &part{}
	return nil
}

// started says whether a subtask has a share of an open file.
func (w *Writer) started(m Member, id weir.CheckpointID) bool {
	f := w.files[id]
	return f != nil && f.parts[m] != nil
}

// open begins a checkpoint. One that still captures is given up for it.
func (w *Writer) open(ev Start) (acts []Action) {
	if f := w.files[w.newest]; f != nil && !f.captured() {
		acts = w.fail(f, because(ev.Member, weir.CheckpointAsyncException, fmt.Errorf("%w: checkpoint %d", ErrOverlap, ev.ID)))
	}
	w.newest, w.failed = ev.ID, failure{}
	f := &file{id: ev.ID, awaited: map[Member]bool{}, parts: map[Member]*part{ev.Member: {}}}
	for m := range w.members {
		if m != ev.Member {
			f.awaited[m] = true
		}
	}
	w.files[ev.ID] = f
	return acts
}

// captured says whether all of a file is captured, if not yet written.
func (f *file) captured() bool {
	for _, p := range f.parts {
		if !p.finished() {
			return false
		}
	}
	return len(f.awaited) == 0
}

// capturing finds the part that an event of a member is about.
func (w *Writer) capturing(m Member, id weir.CheckpointID) (*file, *part) {
	f := w.files[id]
	if f == nil || f.parts[m] == nil || f.parts[m].answered {
		return nil, nil
	}
	return f, f.parts[m]
}

func (w *Writer) onWrite(ev Write) []Action {
	f, p := w.capturing(ev.Member, ev.ID)
	switch {
	case p == nil:
		return note("%s: it is not captured, the newest is %d", ev, w.newest)
	case p.done[ev.Side]:
		return w.fail(f, because(ev.Member, weir.CheckpointAsyncException, fmt.Errorf("%w: %s of checkpoint %d", ErrFinished, ev.Side, ev.ID)))
	case ev.Bytes > w.memory-w.held:
		return w.fail(f, because(ev.Member, weir.CheckpointAsyncException,
			fmt.Errorf("%w: %d bytes more than %d of %d", ErrMemory, ev.Bytes, w.held, w.memory)))
	}
	w.held += ev.Bytes
	p.bytes += ev.Bytes
	return []Action{Keep{}}
}

func (w *Writer) onFinish(ev Finish) []Action {
	f, p := w.capturing(ev.Member, ev.ID)
	if p == nil || p.done[ev.Side] {
		return note("%s: it is not captured", ev)
	}
	p.done[ev.Side] = true
	if !p.finished() {
		return nil
	}
	if p.bytes == 0 {
		p.answered = true
		return w.settle(f, []Action{Answer{Member: ev.Member, ID: ev.ID}})
	}
	p.put = true
	return w.settle(f, []Action{Put{ev.Member, ev.ID, p.bytes}})
}

// onAbort gives up what is open. What is started later is answered by onStart.
func (w *Writer) onAbort(ev Abort) (acts []Action) {
	if ev.ID > w.aborted {
		w.aborted, w.abort = ev.ID, because(ev.Member, weir.CheckpointAsyncException, ev.Cause)
	}
	for _, id := range slices.Sorted(maps.Keys(w.files)) {
		switch {
		case id == ev.ID:
			acts = append(acts, w.fail(w.files[id], because(ev.Member, weir.CheckpointAsyncException, ev.Cause))...)
		case id < ev.ID:
			acts = append(acts, w.fail(w.files[id], subsumed())...)
		}
	}
	return acts
}

// onLeave takes a subtask out. Others that share a file with it lose theirs, unless it
// had captured all.
func (w *Writer) onLeave(ev Leave) (acts []Action) {
	delete(w.members, ev.Member)
	for _, id := range slices.Sorted(maps.Keys(w.files)) {
		f := w.files[id]
		delete(f.awaited, ev.Member)
		p := f.parts[ev.Member]
		if p != nil {
			p.answered = true
		}
		if p != nil && !p.finished() {
			acts = append(acts, w.fail(f, because(ev.Member, weir.CheckpointAsyncException, ErrEnded))...)
			continue
		}
		acts = w.settle(f, acts)
	}
	return acts
}

func (w *Writer) onWrote(ev Wrote) []Action {
	w.held -= ev.Bytes
	f := w.files[ev.ID]
	if f == nil {
		return note("%s: it was given up", ev)
	}
	if ev.Err != nil {
		return w.fail(f, because(ev.Member, weir.IOException, ev.Err))
	}
	f.parts[ev.Member].written = true
	return w.settle(f, nil)
}

func (w *Writer) onCommitted(ev Committed) (acts []Action) {
	f := w.files[ev.ID]
	switch {
	case f == nil:
		return note("%s: it was given up", ev)
	case ev.Err != nil:
		return w.fail(f, because(noMember, weir.IOException, ev.Err))
	}
	delete(w.files, ev.ID)
	for _, m := range slices.Sorted(maps.Keys(f.parts)) {
		if !f.parts[m].answered {
			acts = append(acts, Answer{Member: m, ID: ev.ID})
		}
	}
	if len(acts) == 0 {
		return []Action{Drop{ev.ID}} // all have left
	}
	return acts
}

func note(format string, args ...any) []Action {
	return []Action{Note{fmt.Sprintf(format, args...)}}
}
