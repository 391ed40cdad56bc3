package processes

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/jobmanager/ha/etcd"
	"github.com/weirflow/weir/jobmanager/ha/etcdserver"
)

// Registry is an etcd beside the cluster's, with the same options, on the same disk.
type Registry struct {
	client *etcd.Registry
	server *etcdserver.Server
	epoch  weir.LeaderEpoch
	last   ha.KV
}

const key = "bench"

// StartRegistry makes one, and becomes its leader. It lies in the cluster's directory, and
// must be closed before the cluster is stopped.
func (c *Cluster) StartRegistry(ctx context.Context) (r *Registry, err error) {
	r = &Registry{}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close(ctx))
		}
	}()
	if r.server, err = etcdserver.Start(ctx, etcdserver.Options{Dir: filepath.Join(c.dir, "bare")}); err != nil {
		return r, err
	}
	if r.client, err = etcd.New(r.server.Client(), etcd.Options{Cluster: "bare", Sole: true, LeaseTTL: time.Minute}); err != nil {
		return r, err
	}
	l, err := r.client.Campaign(ctx, ha.Candidate{ID: "bare", Address: "bare"})
	if err != nil {
		return r, err
	}
	r.epoch = l.Epoch()
	return r, nil
}

// Change changes a key, if the leadership is still there and the key as it was: one
// transaction, as a checkpoint's are.
func (r *Registry) Change(ctx context.Context) (took time.Duration, err error) {
	value := []byte(rand.Text())
	op := ha.Create(key, value)
	if r.last.ModRevision != 0 {
		op = ha.Update(r.last, value)
	}
	begun := time.Now()
	revision, err := r.client.Txn(ctx, r.epoch, op)
	took = time.Since(begun)
	if err != nil {
		return 0, fmt.Errorf("bare transaction: %w", err)
	}
	r.last = ha.KV{Key: key, Value: value, ModRevision: revision}
	return took, nil
}

// Close ends it.
func (r *Registry) Close(ctx context.Context) error {
	var err error
	if r.client != nil {
		err = r.client.Close()
	}
	if r.server != nil {
		err = errors.Join(err, r.server.Close(ctx))
	}
	return err
}
