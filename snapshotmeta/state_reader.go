package snapshotmeta

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/proto"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/proto/snapshotpb"
)

// Contents says what a state file holds.
type Contents struct {
	Attempt    weir.AttemptID
	Checkpoint weir.CheckpointID
	Sections   []Section // in order of their place in the file
}

// Section is a part of a state file.
type Section struct {
	Label  string
	Handle weir.StateHandle // File is left empty: the caller knows it
}

// ReadContents reads the table of contents of a state file, without its sections.
func ReadContents(ctx context.Context, store blobstore.Store, name string) (Contents, error) {
	c, err := readContents(ctx, store, name)
	if errors.Is(err, blobstore.ErrNotFound) {
		return Contents{}, err
	}
	if err != nil {
		return Contents{}, fmt.Errorf("state file %s in %s: %w", name, store.Location(), err)
	}
	return c, nil
}

func readContents(ctx context.Context, store blobstore.Store, name string) (Contents, error) {
	info, err := store.Stat(ctx, name)
	if err != nil {
		return Contents{}, err
	}
	head, err := readRange(ctx, store, name, 0, min(info.Size, stateHeadSize))
	if err != nil {
		return Contents{}, err
	}
	if n := min(len(head), len(stateMagic)); string(head[:n]) != stateMagic[:n] {
		return Contents{}, fmt.Errorf("%w: it begins with %q, not %q", ErrNotSnapshot, head[:n], stateMagic)
	}
	if info.Size < stateHeadSize+stateFootSize {
		return Contents{}, fmt.Errorf("%w: it has only %d bytes", ErrTruncated, info.Size)
	}
	version := binary.LittleEndian.Uint32(head[len(stateMagic):])
	switch {
	case version == 0:
		return Contents{}, fmt.Errorf("%w: format version 0", ErrCorrupt)
	case version > stateVersion:
		return Contents{}, fmt.Errorf("%w: format version %d, this program reads up to %d", ErrNewerVersion, version, stateVersion)
	}
	foot, err := readRange(ctx, store, name, info.Size-stateFootSize, stateFootSize)
	if err != nil {
		return Contents{}, err
	}
	if got := foot[stateFootSize-len(stateEnd):]; string(got) != stateEnd {
		return Contents{}, fmt.Errorf("%w: it ends with %q, not %q", ErrTruncated, got, stateEnd)
	}
	offset, length := binary.LittleEndian.Uint64(foot), binary.LittleEndian.Uint32(foot[8:])
	if length > maxContents || offset < stateHeadSize || offset+uint64(length)+stateFootSize != uint64(info.Size) {
		return Contents{}, fmt.Errorf("%w: footer places %d bytes of contents at %d in a file of %d", ErrCorrupt, length, offset, info.Size)
	}
	body, err := readRange(ctx, store, name, int64(offset), int64(length))
	if err != nil {
		return Contents{}, err
	}
	if got, want := binary.LittleEndian.Uint32(foot[12:]), contentsCRC(version, body); got != want {
		return Contents{}, fmt.Errorf("%w: contents have checksum %08x, the footer says %08x", ErrCorrupt, want, got)
	}
	return contentsFromPB(body, int64(offset))
}

// contentsFromPB decodes the contents; sections must fill the file up to end.
func contentsFromPB(body []byte, end int64) (Contents, error) {
	var m snapshotpb.Contents
	if err := proto.Unmarshal(body, &m); err != nil {
		return Contents{}, fmt.Errorf("%w: contents: %w", ErrCorrupt, err)
	}
	c := Contents{
		Attempt:    weir.AttemptID{Vertex: m.Vertex, Subtask: m.Subtask, Epoch: weir.LeaderEpoch(m.LeaderEpoch), N: m.Attempt},
		Checkpoint: weir.CheckpointID(m.CheckpointId),
	}
	if err := fixed(c.Attempt.Job[:], m.JobId, "job id"); err != nil {
		return Contents{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if len(m.Sections) > maxSections {
		return Contents{}, fmt.Errorf("%w: %d sections, at most %d are allowed", ErrCorrupt, len(m.Sections), maxSections)
	}
	next := int64(stateHeadSize)
	for _, s := range m.Sections {
		if s.Offset != next || s.Length < 0 || s.Length > end-next {
			return Contents{}, fmt.Errorf("%w: section %q lies at %d with %d bytes, want it at %d before %d", ErrCorrupt, s.Label, s.Offset, s.Length, next, end)
		}
		next += s.Length
		c.Sections = append(c.Sections, Section{Label: s.Label, Handle: weir.StateHandle{Offset: s.Offset, Length: s.Length, CRC: s.Crc32C}})
	}
	if next != end {
		return Contents{}, fmt.Errorf("%w: sections end at %d, contents begin at %d", ErrCorrupt, next, end)
	}
	return c, nil
}

// readRange reads exactly length bytes; the caller has bounded them.
func readRange(ctx context.Context, store blobstore.Store, name string, offset, length int64) ([]byte, error) {
	r, err := store.Open(ctx, name, offset, length)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b := make([]byte, length)
	if _, err := io.ReadFull(r, b); err != nil {
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return nil, fmt.Errorf("%w before byte %d", ErrTruncated, offset+length)
		}
		return nil, err
	}
	return b, nil
}
