package link

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
)

// Courier decides when what is sent over a [Memory] arrives. A simulator implements
// it to hold, order and stall deliveries.
type Courier interface {
	// Carry is told of each frame, in the order of Send for each pipe, and of the end
	// of a pipe as a frame of size 0. It calls deliver at once or later, from any
	// goroutine, once, and for one pipe in the order of the calls. A frame it never
	// delivers is lost together with all that follow on its pipe.
	Carry(p Pipe, size int, deliver func())
}

// Pipe is one direction of one connection.
type Pipe struct {
	From, To string // hosts
	Conn     int    // number of the connection, from 1, in the order they were dialled
}

func (p Pipe) String() string { return fmt.Sprintf("%s>%s#%d", p.From, p.To, p.Conn) }

// Memory is a network of hosts within a process. Frames are copied when sent and cut
// into pieces of 16 KiB, as a real network might.
type Memory struct {
	courier Courier

	mu struct {
		sync.Mutex
		listeners map[string]*memoryListener
		conns     map[*memoryConn]struct{} // the dialling ends
		cut       map[[2]string]bool       // pairs of hosts, sorted, that cannot reach each other
		dialled   int
		port      int // the last that was given out
	}
}

// NewMemory makes a network without hosts. Without a courier, frames arrive at once.
func NewMemory(courier Courier) *Memory {
	m := &Memory{courier: courier}
	m.mu.listeners = make(map[string]*memoryListener)
	m.mu.conns = make(map[*memoryConn]struct{})
	m.mu.cut = make(map[[2]string]bool)
	return m
}

// Host returns the network as seen from a host, whose addresses are "name:port".
func (m *Memory) Host(name string) Transport { return &memoryHost{network: m, name: name} }

// Cut ends all connections between two hosts at once, with what is on its way, and
// refuses new ones until Heal.
func (m *Memory) Cut(a, b string) {
	m.mu.Lock()
	m.mu.cut[pairOf(a, b)] = true
	ends := m.connsLocked(func(c *memoryConn) bool { return pairOf(c.pipe.From, c.pipe.To) == pairOf(a, b) })
	m.mu.Unlock()
	abort(ends)
}

// Heal lets two hosts reach each other again.
func (m *Memory) Heal(a, b string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.mu.cut, pairOf(a, b))
}

// Kill ends all connections and listeners of a host at once.
func (m *Memory) Kill(host string) {
	m.mu.Lock()
	ends := m.connsLocked(func(c *memoryConn) bool { return c.pipe.From == host || c.pipe.To == host })
	var listeners []*memoryListener
	for _, l := range m.mu.listeners {
		if l.host == host {
			listeners = append(listeners, l)
		}
	}
	m.mu.Unlock()
	abort(ends)
	for _, l := range listeners {
		l.Close()
	}
}

func (m *Memory) connsLocked(match func(c *memoryConn) bool) []*memoryConn {
	var found []*memoryConn
	for c := range m.mu.conns {
		if match(c) {
			found = append(found, c)
		}
	}
	return found
}

func abort(ends []*memoryConn) {
	for _, c := range ends {
		c.abort()
	}
}

func pairOf(a, b string) [2]string { return [2]string{min(a, b), max(a, b)} }

type memoryHost struct {
	network *Memory
	name    string
}

var _ Transport = (*memoryHost)(nil)

func (h *memoryHost) Listen(_ context.Context, address string) (Listener, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("listen at %q: %w", address, err)
	}
	m := h.network
	m.mu.Lock()
	defer m.mu.Unlock()
	if port == "0" {
		m.mu.port++
		port = strconv.Itoa(m.mu.port)
	}
	l := &memoryListener{network: m, host: h.name, address: net.JoinHostPort(h.name, port)}
	l.incoming = make(chan *memoryConn)
	l.closed = make(chan struct{})
	if m.mu.listeners[l.address] != nil {
		return nil, fmt.Errorf("listen at %s: %w", l.address, ErrAddressInUse)
	}
	m.mu.listeners[l.address] = l
	return l, nil
}

func (h *memoryHost) Dial(ctx context.Context, address string) (Conn, error) {
	m := h.network
	m.mu.Lock()
	l := m.mu.listeners[address]
	if l == nil || m.mu.cut[pairOf(h.name, l.host)] {
		m.mu.Unlock()
		return nil, fmt.Errorf("dial %s: %w", address, ErrRefused)
	}
	m.mu.dialled++
	near := &memoryConn{network: m, pipe: Pipe{From: h.name, To: l.host, Conn: m.mu.dialled}}
	far := &memoryConn{network: m, pipe: Pipe{From: l.host, To: h.name, Conn: m.mu.dialled}}
	near.in, near.out = newPipe(), newPipe()
	far.in, far.out = near.out, near.in
	near.peer, far.peer = far, near
	m.mu.conns[near] = struct{}{}
	m.mu.Unlock()

	select {
	case l.incoming <- far:
		return near, nil
	case <-l.closed:
		near.abort()
		return nil, fmt.Errorf("dial %s: %w", address, ErrRefused)
	case <-ctx.Done():
		near.abort()
		return nil, fmt.Errorf("dial %s: %w", address, context.Cause(ctx))
	}
}

type memoryListener struct {
	network  *Memory
	host     string
	address  string
	incoming chan *memoryConn
	closed   chan struct{}
	once     sync.Once
}

var _ Listener = (*memoryListener)(nil)

func (l *memoryListener) Accept(ctx context.Context) (Conn, error) {
	select {
	case <-l.closed:
		return nil, ErrClosed
	default:
	}
	select {
	case c := <-l.incoming:
		return c, nil
	case <-l.closed:
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (l *memoryListener) Address() string { return l.address }

func (l *memoryListener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.network.mu.Lock()
		defer l.network.mu.Unlock()
		delete(l.network.mu.listeners, l.address)
	})
	return nil
}
