package daemon

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/localfs"
)

// identity is who a TaskManager is: the same over restarts, and new per process.
type identity struct {
	id          weir.TaskManagerID
	incarnation weir.Incarnation
	lock        io.Closer // keeps a second process out of the data directory
}

// identify reads the id kept in the data directory, or makes one.
func identify(fs localfs.FS) (identity, error) {
	lock, err := fs.Lock("lock")
	if err != nil {
		return identity{}, fmt.Errorf("data directory %s: %w", fs.Location(), err)
	}
	text, err := localfs.ReadOrCreate(fs, "taskmanager-id", func() []byte {
		var id weir.TaskManagerID
		_, _ = rand.Read(id[:]) // it never fails
		return []byte(id.String() + "\n")
	})
	if err != nil {
		_ = lock.Close()
		return identity{}, fmt.Errorf("identity of this TaskManager: %w", err)
	}
	id, err := weir.ParseTaskManagerID(strings.TrimSpace(string(text)))
	if err != nil {
		_ = lock.Close()
		return identity{}, fmt.Errorf("identity of this TaskManager in %s: %w", fs.Location(), err)
	}
	return identity{id: id, incarnation: newIncarnation(), lock: lock}, nil
}

func newIncarnation() weir.Incarnation {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return weir.Incarnation(binary.LittleEndian.Uint64(b[:]))
}
