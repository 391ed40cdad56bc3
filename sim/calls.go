package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weirflow/weir/blobstore/faulty"
	"github.com/weirflow/weir/jobmanager/ha"
)

// What the world answers with when it makes a call fail.
var (
	errDisk     = errors.New("simulated disk fails")
	errRegistry = errors.New("simulated registry does not answer")
	errNetwork  = errors.New("simulated network: no way there")
)

// call is a call through a seam that waits for its verdict.
type call struct {
	name  string // sorts the calls that wait
	topic string
	by    *instance
	what  string
	after bool // it has had effect; the verdict is about its answer
	// verdict gets nil, or the error that the caller is to get.
	verdict chan error
}

const (
	topicDisk     = "disk"
	topicRegistry = "registry"
	topicDial     = "dial"
)

// await waits for the verdict, or the end of ctx. It is called by the processes.
func (w *World) await(ctx context.Context, topic string, by *instance, what string, after bool) error {
	c := &call{topic: topic, by: by, what: what, after: after, verdict: make(chan error, 1)}
	c.name = by.p.name + " " + topic + " " + plain(what)
	w.mu.Lock()
	at, _ := slices.BinarySearchFunc(w.mu.calls, c.name+"\xff", func(o *call, name string) int { return strings.Compare(o.name, name) })
	w.mu.calls = slices.Insert(w.mu.calls, at, c)
	w.mu.Unlock()
	select {
	case err := <-c.verdict:
		return err
	case <-ctx.Done():
		w.mu.Lock()
		defer w.mu.Unlock()
		w.mu.calls = slices.DeleteFunc(w.mu.calls, func(o *call) bool { return o == c })
		return context.Cause(ctx)
	}
}

// answerable says whether a call could end now. World.mu is held.
func (w *World) answerable(c *call) bool {
	now := w.now()
	switch {
	case w.paused(c.by.p.name):
		return false
	case c.topic == topicDisk:
		return !now.Before(c.by.p.trouble[DiskHang])
	case c.topic == topicRegistry:
		return !now.Before(c.by.p.trouble[RegistryHang])
	}
	return true
}

// answer gives a call its verdict.
func (w *World) answer(c *call) {
	err := w.judge(c)
	result := "ok"
	switch {
	case err != nil && c.after:
		result = "answer lost"
	case err != nil:
		result = "fails"
	}
	w.trace(c.topic, "%s %s: %s", c.by.p.name, c.what, result)
	if c.topic == topicDial && !w.healed {
		w.firstAsked = w.rng.IntN(len(w.jms))
	}
	c.verdict <- err
}

// judge lets the seed decide.
func (w *World) judge(c *call) error {
	if w.healed {
		return nil
	}
	switch c.topic {
	case topicDisk:
		fails := w.Plan.DiskFails
		if c.after {
			fails = w.Plan.DiskLoses
		}
		if w.now().Before(c.by.p.trouble[DiskOutage]) || w.chance(fails) {
			return errDisk
		}
	case topicRegistry:
		fails := w.Plan.RegistryFails
		if c.after {
			fails = w.Plan.RegistryLoses
		}
		if w.chance(fails) {
			if c.after && strings.Contains(c.what, "chain/") {
				w.marks.add(MarkLostAnswer)
			}
			return errRegistry
		}
	}
	return nil
}

// diskHook stands before the disk for one process. Reads and writes of an open blob
// pass; what opens, ends and finds blobs waits.
func (w *World) diskHook(by *instance) faulty.Hook {
	return faulty.Hook{
		Before: func(ctx context.Context, op faulty.Op, name string) error {
			if op == faulty.Read || op == faulty.Write {
				return nil
			}
			return w.await(ctx, topicDisk, by, fmt.Sprintf("%s %s", op, name), false)
		},
		After: func(ctx context.Context, op faulty.Op, name string) error {
			if op == faulty.Delete {
				w.oracle.deleted(name)
			}
			if op != faulty.Commit && op != faulty.Delete {
				return nil
			}
			return w.await(ctx, topicDisk, by, fmt.Sprintf("%s %s done", op, name), true)
		},
	}
}

// registryHook stands before the registry for one process.
func (w *World) registryHook(by *instance) ha.Hook {
	return ha.Hook{
		Before: func(ctx context.Context, c ha.Call) error {
			return w.await(ctx, topicRegistry, by, fmt.Sprintf("%s %s", c.Method, strings.Join(c.Keys, " ")), false)
		},
		After: func(ctx context.Context, c ha.Call) error {
			if c.Method == "campaign" {
				w.oracle.leads(by)
			}
			if c.Method != "txn" {
				return nil
			}
			w.oracle.registryChanged()
			return w.await(ctx, topicRegistry, by, fmt.Sprintf("%s %s done", c.Method, strings.Join(c.Keys, " ")), true)
		},
	}
}
