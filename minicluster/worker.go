package minicluster

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/netstack"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/statebackend"
	"github.com/weirflow/weir/statebackend/heap"
	"github.com/weirflow/weir/taskmanager"
)

// worker is one TaskManager with its data path.
type worker struct {
	stack *netstack.Stack
	tm    *taskmanager.TaskManager // nil after half a start
}

// startWorker starts a TaskManager under a fresh identity.
func (c *Cluster) startWorker(ctx context.Context, i int, dialer rpc.Dialer) (*worker, error) {
	host := fmt.Sprintf("taskmanager-%d", i)
	var id weir.TaskManagerID
	var incarnation [8]byte
	for _, b := range [][]byte{id[:], incarnation[:]} {
		if _, err := rand.Read(b); err != nil {
			return nil, err
		}
	}
	logger := c.o.Logger.Named(host)
	run := weir.Incarnation(binary.LittleEndian.Uint64(incarnation[:]))
	stack, err := netstack.New(netstack.Options{
		TaskManager: id, Incarnation: run, Cluster: c.o.ClusterID, Listen: host + ":0",
		Transport: c.network.Host(host), Memory: c.o.Memory, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	w := &worker{stack: stack}
	ctx = context.WithoutCancel(ctx)
	if err := stack.Start(ctx); err != nil {
		return nil, errors.Join(err, w.stop(ctx))
	}
	w.tm, err = taskmanager.New(taskmanager.Options{
		ID: id, Incarnation: run, CodeID: c.o.CodeID, Slots: c.o.Slots, Host: host, Memory: c.o.Memory,
		Catalog: c.o.Catalog, Stack: stack, Store: c.store, OpenStore: c.o.OpenStore, Dialer: dialer, Metrics: c.o.Metrics, Logger: logger,
		Backends: map[string]statebackend.Factory{heap.Name: heap.NewFactory(c.pages)},
	})
	if err == nil {
		err = w.tm.Start(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, w.stop(ctx))
	}
	return w, nil
}

// stop ends the TaskManager, then its data path; on nil it does nothing.
func (w *worker) stop(ctx context.Context) error {
	if w == nil {
		return nil
	}
	var err error
	if w.tm != nil {
		err = w.tm.Close(ctx)
	}
	return errors.Join(err, w.stack.Close(ctx))
}
