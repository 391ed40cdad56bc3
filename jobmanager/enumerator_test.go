package jobmanager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/rpc"
)

// eventEnumerator answers events, or misbehaves in one of its calls.
type eventEnumerator struct {
	testEnumerator
	to      operator.EnumeratorContext
	started error
	handle  func(to operator.EnumeratorContext, subtask int, event string) error
	close   func()
}

func (e *eventEnumerator) Start(_ context.Context, to operator.EnumeratorContext) error {
	e.to = to
	return e.started
}

func (e *eventEnumerator) HandleEvent(_ context.Context, subtask int, event []byte) error {
	return e.handle(e.to, subtask, string(event))
}

func (e *eventEnumerator) Close() error {
	if e.close != nil {
		e.close()
	}
	return nil
}

func (w *world) setEnumerator(e func() operator.Enumerator) {
	w.catalog.mu.Lock()
	defer w.catalog.mu.Unlock()
	w.catalog.mu.enumerator = e
}

// ask sends an event of the newest attempt of a job's source.
func (f *fleet) ask(job weir.JobID, event string) {
	f.w.t.Helper()
	all := f.deployments()
	for _, d := range slices.Backward(all) {
		if d.Attempt.Job == job && d.Attempt.Vertex == 0 && d.Attempt.Subtask == 0 {
			f.mu.Lock()
			tm := f.mu.tasks[d.Attempt].tm
			f.mu.Unlock()
			tm.handler.Receive(tm, rpc.OperatorEvent{Attempt: d.Attempt, Operator: weir.OperatorIDOf("src"), Event: []byte(event)})
			synctest.Wait()
			return
		}
	}
	f.w.t.Fatal("the job has no source")
}

// told returns the events that TaskManagers were sent for a job's source.
func told(job weir.JobID, tms ...*fakeTM) (events []string) {
	for _, tm := range tms {
		for _, m := range tm.messages() {
			if e, ok := m.(rpc.OperatorEvent); ok && e.Attempt.Job == job {
				events = append(events, fmt.Sprintf("%d: %s", e.Attempt.Subtask, e.Event))
			}
		}
	}
	return events
}

func TestEnumeratorAnswersReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		tm := f.join(jm, 1)
		tm.live(w.hearts())
		w.setEnumerator(func() operator.Enumerator {
			return &eventEnumerator{handle: func(to operator.EnumeratorContext, subtask int, event string) error {
				if err := to.SendEvent(to.Parallelism(), nil); err == nil {
					return errors.New("a subtask that is not there got an event")
				}
				return to.SendEvent(subtask, []byte("answer to "+event))
			}}
		})
		job := w.submit(jm, "job", checkpointed)
		w.await(jm, "job", rpc.JobRunning)
		f.ask(job, "one")
		f.ask(job, "two")
		if got := told(job, tm); !slices.Equal(got, []string{"0: answer to one", "0: answer to two"}) {
			t.Errorf("told %q", got)
		}
	})
}

// B100: no call of user code holds up the JobManager, and one that never returns is given
// up; the job goes on with another enumerator.
func TestEnumeratorThatBreaksWhileItRunsIsReplaced(t *testing.T) {
	for name, misbehave := range map[string]func(release <-chan struct{}) error{
		"hangs":  func(release <-chan struct{}) error { <-release; return nil },
		"panics": func(<-chan struct{}) error { panic("no split") },
		"fails":  func(<-chan struct{}) error { return errors.New("no split") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				jm, f := w.manager(), w.fleet()
				tm := f.join(jm, 1)
				tm.live(w.hearts())
				release := make(chan struct{})
				t.Cleanup(func() { close(release) })
				w.setEnumerator(nil)
				other := w.submit(jm, "other", checkpointed)
				w.await(jm, "other", rpc.JobRunning)
				made := 0
				w.setEnumerator(func() operator.Enumerator {
					made++
					broken := made == 1
					return &eventEnumerator{handle: func(to operator.EnumeratorContext, subtask int, event string) error {
						if broken {
							return misbehave(release)
						}
						return to.SendEvent(subtask, []byte("answer to "+event))
					}}
				})
				job := w.submit(jm, "job", checkpointed)
				w.await(jm, "job", rpc.JobRunning)
				f.ask(job, "one")
				before := time.Now()
				if _, err := jm.Get(t.Context(), "job"); err != nil || time.Since(before) != 0 { // B99
					t.Errorf("the call was not answered at once: %v", err)
				}
				time.Sleep(3 * time.Minute)
				synctest.Wait()
				d := w.await(jm, "job", rpc.JobRunning)
				if d.Restarts != 1 || made != 2 {
					t.Fatalf("%d restarts, %d enumerators; failure: %v", d.Restarts, made, d.Failure)
				}
				f.ask(job, "two")
				if got := told(job, tm); !slices.Equal(got, []string{"0: answer to two"}) {
					t.Errorf("told %q", got)
				}
				if d := w.await(jm, "other", rpc.JobRunning); d.Restarts != 0 || d.JobSummary.Job != other {
					t.Errorf("the other job: %+v", d)
				}
				w.awaitCheckpoint(jm, "other", 2)
			})
		})
	}
}

func TestEnumeratorSaysThatRestartingCannotHelp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		f.join(jm, 1).live(w.hearts())
		cause := &weir.Failure{Message: "no such directory", Fault: weir.FaultOutside, NoRetry: true}
		w.setEnumerator(func() operator.Enumerator { return &eventEnumerator{started: cause} })
		w.submit(jm, "job", checkpointed)
		d := w.await(jm, "job", rpc.JobFailed)
		if f := d.Failure; f == nil || d.Restarts != 0 || !f.NoRetry || f.Fault != weir.FaultOutside || f.Operator != "src" || !strings.Contains(f.Message, "no such directory") {
			t.Errorf("%d restarts; failure: %+v", d.Restarts, d.Failure)
		}
	})
}

// An enumerator whose Close hangs or panics holds up neither the job's end nor the
// JobManager's.
func TestEnumeratorThatCannotBeClosedIsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		jm, f := w.manager(), w.fleet()
		f.join(jm, 1).live(w.hearts())
		release := make(chan struct{})
		t.Cleanup(func() { close(release) })
		for _, name := range []string{"hangs", "panics"} {
			w.setEnumerator(func() operator.Enumerator {
				return &eventEnumerator{close: func() {
					if name == "panics" {
						panic("cannot be closed")
					}
					<-release
				}}
			})
			w.submit(jm, name, checkpointed)
			w.await(jm, name, rpc.JobRunning)
			w.must(jm.Cancel(t.Context(), name))
			w.await(jm, name, rpc.JobCanceled)
		}
	})
}
