package gate

import (
	"time"

	"github.com/weirflow/weir/netstack/buffer"
	"github.com/weirflow/weir/netstack/wire"
)

// Item is what Poll found: elements or an event.
type Item struct {
	Channel int
	Type    wire.DataType
	// Data are bytes of elements, if Type is TypeData; the caller releases it.
	Data buffer.View
	// Event are an event's bytes otherwise. wire.DecodeEvent reads them.
	Event []byte
	// Spent is how long the event has been on this side: to be added to a barrier's
	// age (wire.AddAge).
	Spent time.Duration
	// More says that another Poll finds something.
	More bool
}

// InputGate is one input of a task. Poll, Resume and End are for the task's goroutine.
type InputGate struct{}

// Poll returns the next item. It never waits: false means that there is none, and
// that wake will be called. An error is a [*PartitionLost]; it stays.
func (g *InputGate) Poll() (Item, bool, error) { return Item{}, false, nil }

// Resume lets a channel go on after a blocking event.
func (g *InputGate) Resume(channel int) {}

// End says that the channel's last event was taken; the channel is closed.
func (g *InputGate) End(channel int) {}

// Channels is the number of channels.
func (g *InputGate) Channels() int { return 0 }

// QueuedBytes is how much the channels hold that was not polled, as far as it is in
// this process: for local channels that is the producer's queue.
func (g *InputGate) QueuedBytes() int64 { return 0 }

// Consumed is the number of bytes of elements that were polled from a channel, in all.
func (g *InputGate) Consumed(channel int) int64 { return 0 }
