package taskmanager

import (
	"sync"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/taskmanager/lifecycle"
)

// event is something for tm/loop.
//
//sumtype:decl
type event interface{ event() }

type (
	// connected: a session is open; nothing was said yet.
	connected struct{ session rpc.Session }
	// received and closed come from a session's goroutine.
	received struct {
		session rpc.Session
		message rpc.Message
	}
	closed struct {
		session rpc.Session
		cause   error
	}
	// changed and send come from tasks.
	changed struct {
		attempt weir.AttemptID
		what    lifecycle.Event
	}
	send struct{ message rpc.Message }
	// Timers. A number tells a timer's round, so that an old one is recognised.
	beat      struct{ round int }
	silent    struct{ round int } // no answer to a registration or to heartbeats
	abandoned struct{ round int } // no JobManager for the grace time
	stuck     struct{ attempt weir.AttemptID }
	redial    struct{}
	gone      struct {
		job   weir.JobID
		round int
	}
	// stop ends everything.
	stop struct{}
)

func (connected) event() {}
func (received) event()  {}
func (closed) event()    {}
func (changed) event()   {}
func (send) event()      {}
func (beat) event()      {}
func (silent) event()    {}
func (abandoned) event() {}
func (stuck) event()     {}
func (redial) event()    {}
func (gone) event()      {}
func (stop) event()      {}

// inbox brings events to tm/loop. It has no bound of its own: what sessions bring is
// bounded by them, and a task posts little and seldom.
type inbox struct {
	wake chan struct{}
	mu   struct {
		sync.Mutex
		events []event
	}
}

func newInbox() *inbox { return &inbox{wake: make(chan struct{}, 1)} }

// post adds an event. It never waits.
func (b *inbox) post(ev event) {
	b.mu.Lock()
	b.mu.events = append(b.mu.events, ev)
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// take returns all events there are.
func (b *inbox) take() []event {
	b.mu.Lock()
	defer b.mu.Unlock()
	events := b.mu.events
	b.mu.events = nil
	return events
}
