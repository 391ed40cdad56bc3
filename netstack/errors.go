package netstack

import "errors"

// Errors of a Stack, when it is made and when a task is opened.
var (
	// ErrBadOptions is returned by New for options that make no sense.
	ErrBadOptions = errors.New("bad options of the network stack")
	// ErrBadSpec is returned by OpenTask for channels or buffers that make no sense.
	ErrBadSpec = errors.New("bad task spec")
	// ErrTaskExists is returned by OpenTask for an attempt that is open.
	ErrTaskExists = errors.New("attempt is open already")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("network stack closed")
)

// Why a channel or a connection failed.
var (
	// ErrConnectionLost is the cause of a connection that ended without a reason given.
	ErrConnectionLost = errors.New("connection lost")
	// ErrReplaced is the cause of a connection for which the peer made another.
	ErrReplaced = errors.New("replaced by a newer connection of the same process")
	// ErrUnreachable is the cause if no connection came about in time.
	ErrUnreachable = errors.New("no connection to the task manager")
	// ErrRefused is what a peer said no to.
	ErrRefused = errors.New("refused by the peer")
	// ErrProtocol is the cause if a peer sent what it should not have sent.
	ErrProtocol = errors.New("protocol violated")
	// ErrProducerFailed is the cause if the producing task failed.
	ErrProducerFailed = errors.New("producer failed")
	// ErrPartitionNotFound is the cause if the producer was not deployed in time.
	ErrPartitionNotFound = errors.New("partition not found")
	// ErrFenced is the cause if somebody newer is there.
	ErrFenced = errors.New("fenced by a newer attempt or leader")
	// ErrNeverRead is why what a finished task had left was dropped in the end.
	ErrNeverRead = errors.New("no consumer came for the output of a finished task")
	// ErrJobReleased is the cause for readers of what a finished task had left.
	ErrJobReleased = errors.New("job released")
)
