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

// bare does what a checkpoint cannot do without.
type bare struct {
	*processes.Registry
	dir     string // of files
	content []byte

	// synced and changed are what was measured last.
	synced, changed time.Duration
}

func startBare(ctx context.Context, c *cluster) (*bare, error) {
	r, err := c.StartRegistry(ctx)
	if err != nil {
		return nil, err
	}
	b := &bare{Registry: r, dir: filepath.Join(c.Checkpoints(), "bare")}
	if err := os.Mkdir(b.dir, 0o700); err != nil {
		return nil, errors.Join(err, r.Close(ctx))
	}
	return b, nil
}

// work takes an id, writes a file of so many bytes and adds a link.
func (b *bare) work(ctx context.Context, size int) (took time.Duration, err error) {
	for len(b.content) < size {
		b.content = append(b.content, rand.Text()...)
	}
	begun := time.Now()
	if _, err := b.Change(ctx); err != nil {
		return 0, err
	}
	taken := time.Now()
	if err := b.write(b.content[:size]); err != nil {
		return 0, err
	}
	written := time.Now()
	if _, err := b.Change(ctx); err != nil {
		return 0, err
	}
	took = time.Since(begun)
	b.synced = written.Sub(taken)
	b.changed = took - b.synced
	return took, nil
}

// write writes a file into a new directory, so that it survives a crash of the host.
func (b *bare) write(content []byte) error {
	dir := filepath.Join(b.dir, rand.Text())
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, "bare"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close(), syncDir(dir), syncDir(b.dir))
}

func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
