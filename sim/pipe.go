package sim

import (
	"context"
	"slices"

	"github.com/weirflow/weir/netstack/link"
)

// pipe is one direction of a connection, of data or of control: what was sent and is
// not delivered.
type pipe struct {
	name     string
	from, to string // hosts
	topic    string
	queue    []item
}

// item is something on its way.
type item struct {
	what    string
	deliver func()
}

// deliverable says whether the head of the pipe could arrive now. World.mu is held.
func (w *World) deliverable(p *pipe) bool {
	return len(p.queue) > 0 && !w.blocked(p.from, p.to)
}

// blocked says whether nothing gets from one host to the other now.
func (w *World) blocked(from, to string) bool {
	if _, ok := w.stalled[direction{from, to}]; ok {
		return true
	}
	return w.paused(from) || w.paused(to)
}

// takeLocked takes up to n items off the head.
func (p *pipe) takeLocked(n int) []item {
	n = min(n, len(p.queue))
	items := slices.Clone(p.queue[:n])
	p.queue = slices.Delete(p.queue, 0, n)
	return items
}

// deliver makes items arrive.
func (w *World) deliver(p *pipe, items []item) {
	if p.topic == topicData {
		w.trace(p.topic, "%s x%d", p.name, len(items))
	}
	for _, it := range items {
		if it.what != "" {
			w.trace(p.topic, "%s %s", p.name, it.what)
		}
		it.deliver()
	}
}

const (
	topicData    = "deliver"
	topicControl = "control"
)

// put adds an item to a pipe, which it makes if need be. Any goroutine may call it.
func (w *World) put(topic, name, from, to string, it item) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.putLocked(topic, name, from, to, it)
}

func (w *World) putLocked(topic, name, from, to string, it item) {
	p := w.mu.pipes[name]
	if p == nil {
		p = &pipe{name: name, from: from, to: to, topic: topic}
		w.mu.pipes[name] = p
		at, _ := slices.BinarySearch(w.mu.names, name)
		w.mu.names = slices.Insert(w.mu.names, at, name)
	}
	p.queue = append(p.queue, it)
}

// dropPipes forgets the pipes that match, with what is on its way.
func (w *World) dropPipes(match func(p *pipe) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.names = slices.DeleteFunc(w.mu.names, func(name string) bool {
		if match(w.mu.pipes[name]) {
			delete(w.mu.pipes, name)
			return true
		}
		return false
	})
}

// courier carries the frames of the data network.
type courier struct{ w *World }

var _ link.Courier = courier{}

// Carry puts a frame on its way.
func (c courier) Carry(p link.Pipe, _ int, deliver func()) {
	c.w.put(topicData, p.String(), p.From, p.To, item{deliver: deliver})
}

// transport is the data network as one instance sees it.
type transport struct {
	link.Transport
	by *instance
}

// Dial refuses what was killed.
func (t transport) Dial(ctx context.Context, address string) (link.Conn, error) {
	if t.by.dead.Load() {
		return nil, errNetwork
	}
	return t.Transport.Dial(ctx, address)
}
