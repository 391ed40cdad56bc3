package externalposition

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/weirflow/weir/operator"
)

// position notes the length of a log in checkpoints.
type position struct {
	log  string // somebody else appends to it
	note string // a file that says how much of it complete checkpoints cover
	// triggered are the lengths at the beginnings of checkpoints that are not known to be
	// complete, ascending.
	triggered []mark
}

// mark is the length of the log when a checkpoint began.
type mark struct{ checkpoint, length int64 }

var _ operator.MasterHook = (*position)(nil)

// errBadState is wrapped when a checkpoint's bytes are not what Trigger gave.
var errBadState = errors.New("bad state of the position's hook")

// Restore implements [operator.MasterHook].
func (p *position) Restore(_ context.Context, checkpoint int64, state []byte) error {
	if checkpoint == 0 || len(state) == 0 {
		return p.write(mark{})
	}
	length, n := binary.Uvarint(state)
	if n != len(state) {
		return fmt.Errorf("%w: %d bytes", errBadState, len(state))
	}
	return p.write(mark{checkpoint, int64(length)})
}

// Trigger implements [operator.MasterHook].
func (p *position) Trigger(_ context.Context, checkpoint int64) ([]byte, error) {
	info, err := os.Stat(p.log)
	if err != nil {
		return nil, err
	}
	p.triggered = append(p.triggered, mark{checkpoint, info.Size()})
	return binary.AppendUvarint(nil, uint64(info.Size())), nil
}

// NotifyComplete implements [operator.MasterHook]. A note that cannot be written is
// written with the next checkpoint.
func (p *position) NotifyComplete(checkpoint int64) {
	for len(p.triggered) > 0 && p.triggered[0].checkpoint <= checkpoint {
		if m := p.triggered[0]; m.checkpoint == checkpoint {
			_ = p.write(m)
		}
		p.triggered = p.triggered[1:]
	}
}

// Close implements [operator.MasterHook].
func (p *position) Close() error { return nil }

// write replaces the note.
func (p *position) write(m mark) error {
	next := p.note + ".next"
	if err := os.WriteFile(next, fmt.Appendf(nil, "checkpoint %d covers %d bytes of %s\n", m.checkpoint, m.length, p.log), 0o666); err != nil {
		return err
	}
	return os.Rename(next, p.note)
}
