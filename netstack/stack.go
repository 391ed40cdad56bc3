package netstack

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/netstack/buffer"
	"github.com/weirflow/weir/netstack/link"
	"github.com/weirflow/weir/netstack/wire"
)

// Options of a Stack.
type Options struct {
	TaskManager weir.TaskManagerID
	Incarnation weir.Incarnation
	Cluster     string // peers of another cluster are refused; at most 256 bytes
	Listen      string // address to listen at
	Transport   link.Transport
	// Memory is the budget for segments in bytes, at least one segment.
	Memory int64
	// ConnectTimeout bounds how long channels wait for a connection to their peer;
	// default 20 s. Then they fail.
	ConnectTimeout time.Duration
	// PartitionTimeout bounds how long a consumer's request waits for its producer to
	// be deployed; default 20 s. Then it is refused.
	PartitionTimeout time.Duration
	// Checksums makes this side send a crc32c with each buffer.
	Checksums bool
	Logger    *zap.Logger // default: none
}

const defaultTimeout = 20 * time.Second

func (o *Options) validate() error {
	switch {
	case o.TaskManager == (weir.TaskManagerID{}):
		return fmt.Errorf("no task manager id: %w", ErrBadOptions)
	case len(o.Cluster) > wire.MaxCluster:
		return fmt.Errorf("cluster id of %d bytes: %w", len(o.Cluster), ErrBadOptions)
	case o.Transport == nil:
		return fmt.Errorf("no transport: %w", ErrBadOptions)
	case o.Memory < buffer.BlockSize:
		return fmt.Errorf("memory of %d bytes is less than one segment: %w", o.Memory, ErrBadOptions)
	case o.ConnectTimeout < 0 || o.PartitionTimeout < 0:
		return fmt.Errorf("negative timeout: %w", ErrBadOptions)
	}
	return nil
}

// Stats are the figures of a Stack.
type Stats struct {
	TotalBuffers, UsedBuffers int
	ExcessBuffers             int // beyond the budget, to end records for which barriers wait
	Connections               int
}

// Stack is the data path of one process. Any goroutine may call it.
type Stack struct {
	options  Options
	self     process
	log      *zap.Logger
	pool     *buffer.NetworkPool
	group    *group.Group
	listener link.Listener
	flushing chan struct{} // tells the flush goroutine of a new partition

	mu struct {
		sync.Mutex
		started, closed bool
		tasks           map[weir.AttemptID]*TaskIO
		peers           map[process]*peer
		greeting        map[link.Conn]struct{} // connections whose peer has not said Hello
		registry        registry
	}
}

// process is one life of a TaskManager.
type process struct {
	id          weir.TaskManagerID
	incarnation weir.Incarnation
}

func (p process) String() string { return fmt.Sprintf("%.8s/%x", p.id, uint64(p.incarnation)) }

// New makes a Stack; it has no effects.
func New(o Options) (*Stack, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if o.ConnectTimeout == 0 {
		o.ConnectTimeout = defaultTimeout
	}
	if o.PartitionTimeout == 0 {
		o.PartitionTimeout = defaultTimeout
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	s := &Stack{
		options:  o,
		self:     process{o.TaskManager, o.Incarnation},
		log:      o.Logger,
		pool:     buffer.NewNetworkPool(int(o.Memory / buffer.BlockSize)),
		flushing: make(chan struct{}, 1),
	}
	s.mu.tasks = make(map[weir.AttemptID]*TaskIO)
	s.mu.peers = make(map[process]*peer)
	s.mu.greeting = make(map[link.Conn]struct{})
	s.mu.registry = newRegistry()
	return s, nil
}

// Start listens. The Stack lives until Close, whatever becomes of ctx.
func (s *Stack) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed || s.mu.started {
		return ErrClosed
	}
	l, err := s.options.Transport.Listen(ctx, s.options.Listen)
	if err != nil {
		return fmt.Errorf("data plane: %w", err)
	}
	s.listener = l
	s.group = group.New(context.WithoutCancel(ctx), "netstack")
	err = errors.Join(s.group.Go("link/accept", s.accept), s.group.Go("flush", s.flush))
	s.mu.started = err == nil
	return err
}

// Address is where it listens, with the port it got.
func (s *Stack) Address() string { return s.listener.Address() }

// Stats returns the figures now.
func (s *Stack) Stats() Stats {
	p := s.pool.Stats()
	st := Stats{TotalBuffers: p.Total, UsedBuffers: p.Used, ExcessBuffers: p.Excess}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.mu.peers {
		if p.conn != nil {
			st.Connections++
		}
	}
	return st
}

// accept takes connections; each says Hello on a goroutine of its own.
func (s *Stack) accept(ctx context.Context) error {
	for {
		l, err := s.listener.Accept(ctx)
		if ctx.Err() != nil || errors.Is(err, link.ErrClosed) {
			return nil
		}
		if err != nil {
			s.log.Warn("data connection not accepted", zap.Error(err))
			continue
		}
		body := func(ctx context.Context) error { s.answer(ctx, l); return nil }
		if s.group.GoThen("link/reader", body, s.readerEnded) != nil {
			l.Close()
		}
	}
}

// readerEnded reports a bug of ours that ended a connection.
func (s *Stack) readerEnded(err error) {
	if err != nil {
		s.log.Error("connection ended by a fault", zap.Error(err))
	}
}

// Close fails what is open, ends all connections and goroutines, and returns
// buffer.ErrLeaked if a task still holds buffers. Idempotent.
func (s *Stack) Close(ctx context.Context) error {
	s.mu.Lock()
	if s.mu.closed {
		s.mu.Unlock()
		return nil
	}
	s.mu.closed = true
	started := s.mu.started
	left := s.mu.registry.all()
	var conns []*connection
	for _, p := range s.mu.peers {
		if p.conn != nil {
			conns = append(conns, p.conn)
		}
	}
	greeting := s.mu.greeting
	s.mu.greeting = nil
	s.mu.Unlock()

	for l := range greeting {
		l.Close()
	}

	for _, p := range left {
		p.Fail(ErrClosed)
	}
	for _, c := range conns {
		c.end(ErrClosed)
	}
	var err error
	if started {
		err = errors.Join(s.listener.Close(), s.group.Stop(ctx))
	}
	if err != nil {
		return err
	}
	return s.pool.Close()
}
