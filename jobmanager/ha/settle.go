package ha

import (
	"context"

	"github.com/weirflow/weir"
)

// Settle makes the transaction and does not return before its end is known, or
// ctx ends: then, and only then, is the error an [ErrDoubtful]. A conflict in which
// every key already is as the ops would have made it means that an earlier try was
// applied whose answer was lost, and is success; values must therefore tell their
// writers apart where that matters.
func Settle(ctx context.Context, reg Registry, guard weir.LeaderEpoch, ops ...Op) (Revision, error) {
	return 0, ErrDoubtful
}
