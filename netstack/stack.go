package netstack

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/netstack/link"
)

// Options of a Stack.
type Options struct {
	TaskManager weir.TaskManagerID
	Incarnation weir.Incarnation
	Cluster     string // peers of another cluster are refused; at most 256 bytes
	Listen      string // address to listen at
	Transport   link.Transport
	// Memory is the budget for segments in bytes.
	Memory int64
	// ConnectTimeout bounds how long channels wait for a connection to their peer;
	// default 20 s. Then they fail.
	ConnectTimeout time.Duration
	// PartitionTimeout bounds how long a consumer's request waits for its producer to
	// be deployed; default 20 s. Then it is refused.
	PartitionTimeout time.Duration
	Logger           *zap.Logger // default: none
}

// Stats are the figures of a Stack.
type Stats struct {
	TotalBuffers, UsedBuffers int
	Connections               int
}

// Stack is the data path of one process. Any goroutine may call it.
type Stack struct{}

// New makes a Stack; it has no effects.
func New(o Options) (*Stack, error) { return &Stack{}, nil }

// Start listens.
func (s *Stack) Start(ctx context.Context) error { return nil }

// Address is where it listens, with the port it got.
func (s *Stack) Address() string { return "" }

// Stats returns the figures now.
func (s *Stack) Stats() Stats { return Stats{} }

// OpenTask makes the outputs and inputs of a task and sets their smallest number of
// buffers aside. It refuses with buffer.ErrInsufficientBuffers if that is impossible.
func (s *Stack) OpenTask(spec TaskSpec) (*TaskIO, error) { return &TaskIO{}, nil }

// ReleaseJob drops what finished tasks of the job left for their consumers.
func (s *Stack) ReleaseJob(job weir.JobID) {}

// Close ends all tasks' channels and all connections. Idempotent.
func (s *Stack) Close(ctx context.Context) error { return nil }
