package wire

import (
	"math"

	"github.com/weirflow/weir"
)

// Bounds of frames, in bytes or numbers.
const (
	MaxPayload    = 32704 // of a Buffer frame: the capacity of a segment
	MaxBufferHead = 64    // of a Buffer frame, everything before the payload
	MaxControl    = 5120  // a whole frame that is no Buffer
	MaxCluster    = 256   // a cluster's name
	MaxMessage    = 4096  // a failure's message
	MaxEvent      = 2048  // an event
	MaxCredit     = 1 << 24
)

// Version is the version of the protocol that Hello agrees on.
const Version = 1

const magic = "weir"

// DataType says what a buffer holds (behaviour §15.7).
type DataType uint8

// Data types.
const (
	TypeNone           DataType = iota // as "next": nothing is available
	TypeData                           // elements; needs a credit
	TypeEvent                          // an event
	TypeBlockingEvent                  // an event after which the producer stops until Resume
	TypeAnnouncedEvent                 // the same, announced at the receiver
	TypePriorityEvent                  // an event that overtakes data
	TypeRecoveredEnd                   // end of channel state: blocks
	typeEnd
)

var typeNames = [...]string{"none", "data", "event", "blocking-event", "announced-event", "priority-event", "end-of-channel-state"}

func (t DataType) String() string {
	if t < typeEnd {
		return typeNames[t]
	}
	return "unknown"
}

// IsEvent says whether a buffer of the type is an event and needs no credit.
func (t DataType) IsEvent() bool { return t > TypeData }

// Blocks says whether the producer stops after it until it is told to resume.
func (t DataType) Blocks() bool {
	return t == TypeBlockingEvent || t == TypeAnnouncedEvent || t == TypeRecoveredEnd
}

// Frame is a control frame: Hello, OpenChannel, AddCredit, Resume, CloseChannel,
// Failure, Backlog or BufferSize.
//
//sumtype:decl
type Frame interface {
	frame()
	// Append appends the frame's bytes.
	Append(b []byte) []byte
}

// Hello is the first frame in each direction.
type Hello struct {
	Cluster         string
	TaskManager     weir.TaskManagerID // the sender
	Incarnation     weir.Incarnation
	Peer            weir.TaskManagerID // whom the sender means to talk to
	PeerIncarnation weir.Incarnation
	Checksums       bool
}

// OpenChannel asks a producer for one subpartition. It goes from consumer to producer.
type OpenChannel struct {
	Channel      uint32 // chosen by the consumer, unique per connection and direction, from 1
	Output       uint32 // the edge, by its index in the job graph
	Subpartition uint32
	Producer     weir.AttemptID
	Consumer     weir.AttemptID
	Epoch        weir.LeaderEpoch // of the leader that deployed the consumer
	Credit       uint32           // initial credit
	// WithoutExclusive says that no buffer is the channel's own: the producer announces
	// its backlog when it has no credit, and forgets its credit at Resume.
	WithoutExclusive bool
}

// Buffer is the head of a frame that carries a segment's bytes or an event.
type Buffer struct {
	Channel  uint32
	Sequence uint32 // wraps around
	Type     DataType
	Next     DataType
	Backlog  uint32
	Base     int64 // base timestamp of the segment
	Checksum uint32
	Payload  int // length of the payload in bytes
}

// AddCredit lets the producer send that many more data buffers.
type AddCredit struct {
	Channel uint32
	Credit  uint32
}

// Resume ends the stop after a blocking event.
type Resume struct{ Channel uint32 }

// CloseChannel says that the consumer wants no more.
type CloseChannel struct{ Channel uint32 }

// Backlog is how many data buffers wait at a producer that has no credit. It goes from
// producer to consumer.
type Backlog struct {
	Channel uint32
	Backlog uint32
}

// BufferSize asks the producer for data buffers of at most so many bytes, from the next
// one that it begins (behaviour §22).
type BufferSize struct {
	Channel uint32
	Size    uint32 // 1 to MaxPayload
}

// FailureCode says what ended a channel or a connection.
type FailureCode uint8

// Failure codes.
const (
	CodeUnknown           FailureCode = iota
	CodePartitionNotFound             // not yet, or no longer
	CodeProducerFailed
	CodeFenced   // an old attempt, epoch or incarnation
	CodeProtocol // a frame that is malformed or out of order
	CodeVersion  // of Hello
	CodeReplaced // by a newer stream of the same incarnation
	codeEnd
)

var codeNames = [...]string{"unknown", "partition not found", "producer failed", "fenced", "protocol violated", "version", "replaced"}

func (c FailureCode) String() string {
	if c < codeEnd {
		return codeNames[c]
	}
	return "unknown"
}

// Failure ends one channel, or with channel 0 the connection.
type Failure struct {
	Channel uint32
	Code    FailureCode
	Message string
	Cause   weir.AttemptID // whose fault it is; zero if unknown
}

func (Hello) frame()        {}
func (OpenChannel) frame()  {}
func (AddCredit) frame()    {}
func (Resume) frame()       {}
func (CloseChannel) frame() {}
func (Failure) frame()      {}
func (Backlog) frame()      {}
func (BufferSize) frame()   {}

// Numbers of the frames in the union.
const (
	numHello = iota + 1
	numOpenChannel
	numBuffer
	numAddCredit
	numResume
	numCloseChannel
	numFailure
	numBacklog
	numBufferSize
)

const maxUint32 = math.MaxUint32
