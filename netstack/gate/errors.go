package gate

import (
	"errors"
	"fmt"

	"github.com/weirflow/weir"
)

// PartitionLost is why a channel failed: its producer is gone, or cannot be reached.
// The consumer's failure is only a consequence.
type PartitionLost struct {
	Producer weir.AttemptID
	Err      error // what happened
}

func (e *PartitionLost) Error() string {
	return fmt.Sprintf("partition of %s is lost: %v", e.Producer, e.Err)
}

// Unwrap returns what happened.
func (e *PartitionLost) Unwrap() error { return e.Err }

// ErrProtocol is returned for a message that a producer should not have sent.
var ErrProtocol = errors.New("protocol violated")
