package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore/fs"
	"github.com/weirflow/weir/examples/checkpointdemo"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/snapshotmeta"
)

// demoKeys is the number of keys of checkpoint-demo, if it is not told another one.
const demoKeys = 16

// picture is what a checkpoint of checkpoint-demo says.
type picture struct {
	positions map[int64]int64 // of the sources: split to numbers emitted
	of        int64           // number of splits
	keys      int64
	files     int // number of handles that lie in files
	tallies   map[string]checkpointdemo.Tally
}

// look reads a checkpoint with the snapshot's reader and the heap's restore.
func look(ctx context.Context, dir, checkpoint string) (picture, error) {
	store, err := fs.OpenExisting(dir)
	if err != nil {
		return picture{}, err
	}
	defer store.Close()
	name, err := filepath.Rel(dir, checkpoint)
	if err != nil {
		return picture{}, err
	}
	p := picture{positions: make(map[int64]int64)}
	if p.tallies, err = checkpointdemo.ReadState(ctx, store, name); err != nil {
		return picture{}, err
	}
	s, err := snapshotmeta.Open(ctx, store, name)
	if err != nil {
		return picture{}, err
	}
	p.keys = demoKeys
	if text := s.Header.Params["keys"]; text != "" {
		if p.keys, err = strconv.ParseInt(text, 10, 64); err != nil {
			return picture{}, err
		}
	}
	s.Handles(func(h weir.StateHandle) {
		if h.File != "" {
			p.files++
		}
	})
	source := s.Operator(weir.OperatorIDOf("datagen"))
	if source == nil {
		return picture{}, fmt.Errorf("%s has no source", checkpoint)
	}
	for _, sub := range source.Subtasks {
		for _, h := range sub.State.Elements {
			if err := p.addSplit(ctx, store, filepath.Dir(name), h); err != nil {
				return picture{}, err
			}
		}
	}
	return p, nil
}

// addSplit reads a split of the generator: version, index, number of splits, done.
func (p *picture) addSplit(ctx context.Context, store *fs.Store, dir string, h weir.StateHandle) error {
	r, err := snapshotmeta.OpenHandle(ctx, store, dir, h)
	if err != nil {
		return err
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	var v [3]int64
	rest := b[min(1, len(b)):]
	for i := range v {
		n, k := binary.Uvarint(rest)
		if k <= 0 {
			return fmt.Errorf("split %x is cut", b)
		}
		v[i], rest = int64(n), rest[k:]
	}
	if _, twice := p.positions[v[0]]; twice {
		return fmt.Errorf("split %d is there twice", v[0])
	}
	p.positions[v[0]], p.of = v[2], v[1]
	return nil
}

// emitted is how many numbers the sources have emitted.
func (p picture) emitted() (n int64) {
	for _, done := range p.positions {
		n += done
	}
	return n
}

// expected is the only right state for the sources' positions: each number that was
// emitted, once.
func (p picture) expected() map[string]checkpointdemo.Tally {
	all := make(map[string]checkpointdemo.Tally)
	for split, done := range p.positions {
		for i := range done {
			n := split + i*p.of
			key := checkpointdemo.KeyName(int(n % p.keys))
			t := all[key]
			all[key] = checkpointdemo.Tally{Count: t.Count + 1, Sum: t.Sum + n}
		}
	}
	return all
}

// audit compares a checkpoint's counts with its sources' positions.
func audit(t *testing.T, info rpc.CheckpointInfo, p picture) {
	t.Helper()
	if want := p.expected(); !maps.Equal(p.tallies, want) {
		t.Errorf("checkpoint %d: sources at %v, counts %v, want %v", info.ID, p.positions, p.tallies, want)
	}
}

// auditNewest audits the newest completed checkpoint of a job that may be retained
// no longer when it is read, and returns its picture.
func (c *cluster) auditNewest(job string) (rpc.CheckpointInfo, picture) {
	c.t.Helper()
	for {
		l, err := c.client.Checkpoints(c.ctx, job)
		if err != nil {
			c.t.Fatalf("checkpoints: %v", err)
		}
		info, ok := newestCompleted(l)
		if !ok {
			c.t.Fatal("no checkpoint is complete")
		}
		p, err := look(c.ctx, c.checkpoints(), info.Path)
		if err != nil {
			if l, again := c.client.Checkpoints(c.ctx, job); again == nil {
				if now, _ := newestCompleted(l); now.ID > info.ID+1 {
					continue // it was deleted meanwhile, as it must be
				}
			}
			c.t.Fatalf("read checkpoint %d: %v", info.ID, err)
		}
		audit(c.t, info, p)
		return info, p
	}
}

func newestCompleted(l rpc.CheckpointList) (rpc.CheckpointInfo, bool) {
	for _, info := range l.Recent {
		if info.Status == rpc.CheckpointCompleted {
			return info, true
		}
	}
	return rpc.CheckpointInfo{}, false
}

// awaitAnswer waits for the first checkpoint after the last number and compares the
// answer with the closed form.
func (c *cluster) awaitAnswer(job string, records int64) {
	c.t.Helper()
	var p picture
	for after := weir.CheckpointID(0); p.emitted() < records; {
		after = c.awaitCheckpoint(job, after)
		var info rpc.CheckpointInfo
		info, p = c.auditNewest(job)
		after = max(after, info.ID)
	}
	if want := checkpointdemo.Expected(records, demoKeys); !maps.Equal(p.tallies, want) {
		c.t.Errorf("counts are %v, want %v", p.tallies, want)
	}
}
