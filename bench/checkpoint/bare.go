package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/jobmanager/ha/etcd"
	"github.com/weirflow/weir/jobmanager/ha/etcdserver"
)

// bare does what a checkpoint cannot do without.
type bare struct {
	dir      string // of files
	content  []byte
	registry *etcd.Registry
	server   *etcdserver.Server
	epoch    weir.LeaderEpoch
	last     ha.KV

	// synced and changed are what was measured last.
	synced, changed time.Duration
}

const bareKey = "bench"

// startBare makes an etcd of its own beside the cluster's, with the same options.
func startBare(ctx context.Context, c *cluster) (b *bare, err error) {
	b = &bare{dir: filepath.Join(c.checkpoints(), "bare")}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.stop(ctx))
		}
	}()
	if err = os.Mkdir(b.dir, 0o700); err != nil {
		return b, err
	}
	if b.server, err = etcdserver.Start(ctx, etcdserver.Options{Dir: filepath.Join(c.dir, "bare")}); err != nil {
		return b, err
	}
	if b.registry, err = etcd.New(b.server.Client(), etcd.Options{Cluster: "bare", Sole: true, LeaseTTL: time.Minute}); err != nil {
		return b, err
	}
	l, err := b.registry.Campaign(ctx, ha.Candidate{ID: "bare", Address: "bare"})
	if err != nil {
		return b, err
	}
	b.epoch = l.Epoch()
	return b, nil
}

func (b *bare) stop(ctx context.Context) error {
	var err error
	if b.registry != nil {
		err = b.registry.Close()
	}
	if b.server != nil {
		err = errors.Join(err, b.server.Close(ctx))
	}
	return err
}

// work takes an id, writes a file of so many bytes and adds a link.
func (b *bare) work(ctx context.Context, size int) (took time.Duration, err error) {
	for len(b.content) < size {
		b.content = append(b.content, rand.Text()...)
	}
	begun := time.Now()
	if err := b.change(ctx); err != nil {
		return 0, err
	}
	taken := time.Now()
	if err := b.write(b.content[:size]); err != nil {
		return 0, err
	}
	written := time.Now()
	if err := b.change(ctx); err != nil {
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

// change changes a key, if the leadership is still there and the key as it was.
func (b *bare) change(ctx context.Context) error {
	value := []byte(rand.Text())
	op := ha.Create(bareKey, value)
	if b.last.ModRevision != 0 {
		op = ha.Update(b.last, value)
	}
	revision, err := b.registry.Txn(ctx, b.epoch, op)
	if err != nil {
		return fmt.Errorf("bare transaction: %w", err)
	}
	b.last = ha.KV{Key: bareKey, Value: value, ModRevision: revision}
	return nil
}
