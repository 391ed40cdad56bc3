package task

import (
	"context"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/planted"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/snapshotmeta"
	"github.com/weirflow/weir/statebackend"
	"github.com/weirflow/weir/taskmanager/chain"
	"github.com/weirflow/weir/taskmanager/mailbox"
	"github.com/weirflow/weir/taskmanager/snapshot"
)

// firingTime is how long timers fire without a look at anything else.
const firingTime = 2 * time.Millisecond

// maxElement bounds one element of an operator's own state, in bytes.
const maxElement = 64 << 20

// files opens the handles of the snapshot that the task starts from.
func (t *Task) files() snapshotmeta.Files {
	return snapshotmeta.Files{Store: t.r.Store, Dir: t.d.Directory, Foreign: t.r.OpenStore}
}

// ownState reads the operators' own state.
func (t *Task) ownState(ctx context.Context) (map[weir.OperatorID][][]byte, error) {
	own := map[weir.OperatorID][][]byte{}
	files := t.files()
	for _, s := range t.d.Restore {
		for _, h := range s.Elements {
			b, err := readAll(ctx, files, h)
			if err != nil {
				return nil, outside("restore the state of operator %q: %v", s.Name, err)
			}
			own[s.Operator] = append(own[s.Operator], b)
		}
	}
	return own, nil
}

func readAll(ctx context.Context, files snapshotmeta.Files, h weir.StateHandle) (_ []byte, err error) {
	if h.IsZero() {
		return []byte{}, nil
	}
	if h.Length > maxElement {
		return nil, fmt.Errorf("an element of %d bytes, want at most %d", h.Length, maxElement)
	}
	r, err := files.Open(ctx, h)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closed := r.Close(); err == nil {
			err = closed
		}
	}()
	return io.ReadAll(io.LimitReader(r, maxElement+1))
}

// backends returns the function that makes and restores an operator's backend, once.
func (t *Task) backends(ctx context.Context) func(weir.OperatorID) (statebackend.Backend, error) {
	return func(op weir.OperatorID) (statebackend.Backend, error) {
		if b := t.keyed[op]; b != nil {
			return b, nil
		}
		name := t.d.Options.StateBackend
		factory := t.r.Backends[name]
		if factory == nil {
			return nil, hopeless("no state backend is called %q", name)
		}
		b, err := factory.New(statebackend.Options{MaxParallelism: t.vertex.MaxParallelism, KeyGroups: t.keyGroups()})
		if err != nil {
			return nil, fmt.Errorf("state backend %q: %w", name, err)
		}
		t.keyed[op] = b
		t.snapshot.AddKeyed(op, snapshot.Keyed{Name: factory.Name(), Range: t.keyGroups(), Backend: b})
		handles, err := t.keyedHandles(op, factory.Name())
		if err != nil || len(handles) == 0 {
			return b, err
		}
		if planted.Is(planted.KeyGroupSkipped) {
			handles[0].Range.First++
		}
		if err := b.Restore(ctx, handles, t.files().Open); err != nil {
			return nil, outside("restore keyed state: %v", err)
		}
		return b, nil
	}
}

// keyedHandles are the handles of an operator's keyed state.
func (t *Task) keyedHandles(op weir.OperatorID, backend string) ([]weir.KeyedStateHandle, error) {
	var handles []weir.KeyedStateHandle
	for _, s := range t.d.Restore {
		if s.Operator != op {
			continue
		}
		for _, h := range s.Keyed {
			if h.Backend != backend {
				return nil, hopeless("the keyed state was written by backend %q and cannot be read by %q", h.Backend, backend)
			}
			if !h.Handle.IsZero() {
				handles = append(handles, h)
			}
		}
	}
	return handles, nil
}

// timerServices returns the function that makes an operator's timers.
func (t *Task) timerServices(backend func(weir.OperatorID) (statebackend.Backend, error)) func(weir.OperatorID, func(uint64, []byte, int64) error) (operator.TimerService, error) {
	return func(op weir.OperatorID, fire func(hash uint64, key []byte, at int64) error) (operator.TimerService, error) {
		b, err := backend(op)
		if err != nil {
			return nil, err
		}
		s, err := chain.NewTimers(chain.TimersOptions{Backend: b, Fire: fire, Now: time.Now, Changed: t.setAlarm})
		if err != nil {
			return nil, err
		}
		t.timers = append(t.timers, s)
		t.setAlarm()
		return s, nil
	}
}

// setAlarm arms the alarm for the earliest timer, if it is not armed for that already.
func (t *Task) setAlarm() {
	earliest := t.earliest()
	if earliest == never || t.alarmAt != 0 && t.alarmAt <= earliest {
		return
	}
	t.alarmAt = earliest
	in := max(0, time.Until(time.UnixMilli(earliest)))
	if t.alarm == nil {
		t.alarm = t.group.AfterFunc("task/alarm", in, t.ring)
		return
	}
	t.alarm.Reset(in)
}

// never is when a timer is due that is not there.
const never = math.MaxInt64

// earliest is when the earliest timer is due.
func (t *Task) earliest() int64 {
	earliest := int64(never)
	for _, s := range t.timers {
		if at, ok := s.Next(); ok {
			earliest = min(earliest, at)
		}
	}
	return earliest
}

// ring posts the letter that timers may be due; while one waits, no other is needed.
func (t *Task) ring(context.Context) {
	_ = t.box.Post(mailbox.Internal, alarm{})
}

// fireTimers fires some of the timers that are due: until somebody wants the task between
// two of them, or for a few milliseconds, or a batch (B07).
func (t *Task) fireTimers() error {
	t.timersDue = false
	begun := time.Now()
	enough := func() bool { return t.suspend.Load() || time.Since(begun) > firingTime }
	for _, s := range t.timers {
		more := false
		err := t.chain.Do("firing a timer", func(operator.Chain) (err error) {
			more, err = s.Fire(operator.BatchSize, enough)
			return err
		})
		if err != nil {
			return err
		}
		t.timersDue = t.timersDue || more
	}
	if t.timersDue {
		t.lateTo.Store(t.earliest())
		return nil
	}
	t.lateTo.Store(0)
	t.alarmAt = 0
	t.setAlarm()
	return nil
}
