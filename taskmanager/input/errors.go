package input

import (
	"errors"
	"fmt"
)

// ErrHalfRecord: an event came in the middle of an element, or recovered data ended there.
var ErrHalfRecord = errors.New("an element is cut")

// ChannelError is what a channel brought that cannot be understood.
type ChannelError struct {
	Input   int // index of the gate
	Channel int // in the gate
	Err     error
}

func (e *ChannelError) Error() string {
	return fmt.Sprintf("input %d, channel %d: %v", e.Input, e.Channel, e.Err)
}

// Unwrap returns what is wrong.
func (e *ChannelError) Unwrap() error { return e.Err }
