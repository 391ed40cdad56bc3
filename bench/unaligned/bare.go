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

// bare does what a checkpoint cannot do without: it writes and syncs as many bytes to the
// same disk, and changes a key in an etcd under guard.
type bare struct {
	dir      string // of files
	registry *etcd.Registry
	server   *etcdserver.Server
	epoch    weir.LeaderEpoch
	last     ha.KV
	buffer   []byte
}

const bareKey = "bench"

// startBare makes an etcd of its own beside the cluster's, with the same options.
func startBare(ctx context.Context, c *cluster) (b *bare, err error) {
	b = &bare{dir: c.checkpoints()}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.stop(ctx))
		}
	}()
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
	errs := make(chan error)
	begun := time.Now()
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

// change changes a key, if the leadership is still there and the key as it was.
func (b *bare) change(ctx context.Context) (took time.Duration, err error) {
	value := []byte(rand.Text())
	op := ha.Create(bareKey, value)
	if b.last.ModRevision != 0 {
		op = ha.Update(b.last, value)
	}
	begun := time.Now()
	revision, err := b.registry.Txn(ctx, b.epoch, op)
	took = time.Since(begun)
	if err != nil {
		return 0, fmt.Errorf("bare transaction: %w", err)
	}
	b.last = ha.KV{Key: bareKey, Value: value, ModRevision: revision}
	return took, nil
}
