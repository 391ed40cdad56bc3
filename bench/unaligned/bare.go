package main

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/weirflow/weir/bench/processes"
)

// bare does what a checkpoint cannot do without: it writes and syncs as many bytes to the
// same disk, and changes a key in an etcd under guard.
type bare struct {
	*processes.Registry
	dir    string // of files
	buffer []byte
}

func startBare(ctx context.Context, c *cluster) (*bare, error) {
	r, err := c.StartRegistry(ctx)
	return &bare{Registry: r, dir: c.Checkpoints()}, err
}

// write writes so many bytes into the directory of the checkpoints and syncs them: in
// files of equal size, at once, as TaskManagers do. Like a checkpoint's, the files stay:
// those that are written after a removal find its pages.
func (b *bare) write(bytes int64, files int) (took time.Duration, err error) {
	each := bytes / int64(files)
	for int64(len(b.buffer)) < each {
		more := make([]byte, each-int64(len(b.buffer)))
		if _, err := rand.Read(more); err != nil {
			return 0, err
		}
		b.buffer = append(b.buffer, more...)
	}
	begun := time.Now()
	errs := make(chan error)
	for range files {
		go func() { errs <- writeFile(filepath.Join(b.dir, "bare-"+rand.Text()), b.buffer[:each]) }()
	}
	for range files {
		err = errors.Join(err, <-errs)
	}
	return time.Since(begun), err
}

func writeFile(name string, content []byte) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}
