package jobmaster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/planted"
	"github.com/weirflow/weir/jobmanager/checkpointing"
	"github.com/weirflow/weir/rpc"
)

const (
	// cleanupPatience bounds the first attempt at a deletion: the coordinator counts it
	// as under way, and too many hold back checkpoints (behaviour §1.4).
	cleanupPatience = 10 * time.Second
	// retryPatience bounds each further attempt, which nobody waits for.
	retryPatience = time.Minute
	// firstRetry and lastRetry are the least and the longest pause before deletions
	// that failed are tried again; it doubles while they all fail.
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
	// failuresPerPass is after how many failures in a row a pass gives up.
	failuresPerPass = 3
	// maxLeftovers bounds what is remembered; what is over is found by gc.
	maxLeftovers = 10_000
)

// leftovers are deletions that have failed so far. While there are any, the store is
// known to refuse or to hang, and new ones join them without an attempt: deleting is
// never in the way of checkpoints (field report B17). They are tried again in the
// background with back-off, and forgotten when the job's loop ends; `weir checkpoint gc`
// finds what is left then. Any goroutine may call it.
type leftovers struct {
	mu struct {
		sync.Mutex
		list  []leftover
		pause time.Duration
		busy  bool // a pass is under way or armed
	}
}

// leftover is one deletion, which can be repeated.
type leftover struct {
	what string // for the log
	act  func(ctx context.Context) error
}

// any says whether there are some, and how many.
func (f *leftovers) any() (n int, some bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.mu.list), len(f.mu.list) > 0
}

// add takes one that has failed, or was not tried; arm is how long to wait for a pass if
// none is under way. dropped: there are too many.
func (f *leftovers) add(x leftover) (arm time.Duration, n int, dropped bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.mu.list) >= maxLeftovers {
		return 0, len(f.mu.list), true
	}
	f.mu.list = append(f.mu.list, x)
	if !f.mu.busy {
		f.mu.busy, f.mu.pause = true, firstRetry
		arm = f.mu.pause
	}
	return arm, len(f.mu.list), false
}

// pass tries them, oldest first; one that fails goes to the end, and after some in a row
// the rest waits. It returns how long to wait for the next pass, 0: none is left.
func (f *leftovers) pass(ctx context.Context) (next time.Duration, left int, overtaken error) {
	f.mu.Lock()
	todo := f.mu.list
	f.mu.list = nil
	f.mu.Unlock()
	var failed []leftover
	done, row := 0, 0
	for len(todo) > 0 && row < failuresPerPass && ctx.Err() == nil {
		x := todo[0]
		todo = todo[1:]
		one, cancel := context.WithTimeout(ctx, retryPatience)
		err := x.act(one)
		cancel()
		switch {
		case err == nil:
			done, row = done+1, 0
		case overtakenBy(err):
			return 0, 0, err
		default:
			failed = append(failed, x)
			row++
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.list = append(append(todo, failed...), f.mu.list...)
	switch {
	case len(f.mu.list) == 0:
		f.mu.busy = false
		return 0, 0, nil
	case done > 0:
		f.mu.pause = firstRetry
	default:
		f.mu.pause = min(2*f.mu.pause, lastRetry)
	}
	return f.mu.pause, len(f.mu.list), nil
}

// cleanUp deletes something, once now, and later if that fails. end is called once, when
// nobody has to wait any more.
func (l *loop) cleanUp(id checkpointing.CleanupID, x leftover, end func(Event)) {
	ended := Checkpointing{checkpointing.CleanupEnded{Cleanup: id}}
	if _, failing := l.leftovers.any(); failing {
		l.deleteLater(x, nil)
		end(ended)
		return
	}
	l.deps.Pools.deletion.do(func(ctx context.Context) {
		one, cancel := context.WithTimeout(ctx, cleanupPatience)
		err := x.act(one)
		cancel()
		switch {
		case ctx.Err() != nil:
		case overtakenBy(err):
			end(Checkpointing{checkpointing.OvertakenByOther{Message: err.Error()}})
			return
		case err != nil:
			l.deleteLater(x, err)
		}
		end(ended)
	})
}

// deleteLater remembers a deletion.
func (l *loop) deleteLater(x leftover, err error) {
	arm, n, dropped := l.leftovers.add(x)
	l.figs.Undeleted(n)
	switch {
	case dropped:
		l.log.Warn("not deleted, and too many wait to be: weir checkpoint gc will find it", zap.String("what", x.what), zap.Error(err))
	case err != nil:
		l.log.Warn("not deleted; will try again", zap.String("what", x.what), zap.Int("undeleted", n), zap.Error(err))
	}
	if arm > 0 {
		l.armCleanup(arm)
	}
}

func (l *loop) armCleanup(after time.Duration) {
	l.m.group.AfterFunc("job/cleanup", after, func(ctx context.Context) {
		next, left, overtaken := l.leftovers.pass(ctx)
		if overtaken != nil || ctx.Err() != nil {
			return // another leader deletes, or gc
		}
		l.figs.Undeleted(left)
		if next > 0 {
			l.log.Warn("deletions still fail", zap.Int("undeleted", left), zap.Duration("again in", next))
			l.armCleanup(next)
		}
	})
}

// counted returns the end of a call that the loop waits for before it ends.
func (l *loop) counted() func(Event) {
	l.calls++
	return func(ev Event) { l.m.inbox.Post(effectDone{ev}) }
}

func (l *loop) discardState(a checkpointing.DiscardState) {
	states := make([]weir.TaskStateSnapshot, len(a.States))
	for i, s := range a.States {
		states[i] = s.State
	}
	l.cleanUp(a.Cleanup, leftover{
		what: fmt.Sprintf("state of checkpoint %d", a.Checkpoint),
		act:  func(ctx context.Context) error { return l.cleaner.DiscardHandles(ctx, a.Location, states...) },
	}, l.counted())
}

// deleteCheckpoint removes the link at once, whatever the store is like, then the files.
func (l *loop) deleteCheckpoint(a checkpointing.DeleteCheckpoint) {
	files := func(ctx context.Context) error {
		if a.KeepFiles && !planted.Is(planted.SavepointDeleted) {
			return nil
		}
		if a.Foreign || a.Kind.IsSavepoint() {
			return l.cleaner.DiscardAt(ctx, a.Metadata)
		}
		return l.cleaner.Discard(ctx, a.Checkpoint)
	}
	x := leftover{what: "checkpoint " + a.Metadata, act: files}
	end := l.counted()
	if !a.Linked && !a.Foreign {
		l.cleanUp(a.Cleanup, x, end)
		return
	}
	l.deps.Pools.storage.do(func(ctx context.Context) {
		err := l.chain.Remove(ctx, a.Checkpoint)
		switch {
		case err == nil:
			l.cleanUp(a.Cleanup, x, end)
		case overtakenBy(err):
			end(Checkpointing{checkpointing.OvertakenByOther{Message: err.Error()}})
		default:
			x.act = func(ctx context.Context) error {
				if err := l.chain.Remove(ctx, a.Checkpoint); err != nil {
					return err
				}
				return files(ctx)
			}
			l.deleteLater(x, err)
			end(Checkpointing{checkpointing.CleanupEnded{Cleanup: a.Cleanup}})
		}
	})
}

func (l *loop) deleteShared(a checkpointing.DeleteShared) {
	l.cleanUp(a.Cleanup, leftover{
		what: fmt.Sprintf("%d shared files", len(a.Files)),
		act:  func(ctx context.Context) error { return l.cleaner.DiscardShared(ctx, a.Files) },
	}, l.counted())
}

// OutcomeOf is how a job ended, as its retention policy looks at it.
func OutcomeOf(s rpc.JobStatus) checkpointing.Outcome {
	switch s {
	case rpc.JobFinished:
		return checkpointing.JobFinished
	case rpc.JobCanceled:
		return checkpointing.JobCanceled
	case rpc.JobFailed:
		return checkpointing.JobFailed
	default:
		return checkpointing.JobSuspended
	}
}

// discardEnded deletes the checkpoints of a job whose end is recorded, if its retention
// policy says so: first the links, so that nobody relies on what goes, then what it had
// claimed elsewhere, then its directory. What is left after a crash is gc's to find: it
// knows the policy.
func (l *loop) discardEnded(status rpc.JobStatus) {
	if l.spec == nil || !l.spec.Settings.Checkpointing.Retention.Deletes(OutcomeOf(status)) {
		return
	}
	end := l.counted()
	l.deps.Pools.deletion.do(func(ctx context.Context) {
		one, cancel := context.WithTimeout(ctx, retryPatience)
		defer cancel()
		if err := l.discardAll(one); err != nil {
			l.log.Warn("checkpoints of the ended job not deleted; weir checkpoint gc will find them", zap.Error(err))
		}
		end(nil)
	})
}

func (l *loop) discardAll(ctx context.Context) error {
	links := l.chain.Links()
	if err := l.deps.Jobs.DropChain(ctx, l.m.record.Job); err != nil {
		return err
	}
	l.chain.Drop()
	var errs []error
	for _, link := range links {
		if l.body.From.claimed(link.Metadata) {
			errs = append(errs, l.cleaner.DiscardAt(ctx, link.Metadata))
		}
	}
	return errors.Join(append(errs, l.cleaner.DiscardJob(ctx, l.m.record.Body))...)
}
