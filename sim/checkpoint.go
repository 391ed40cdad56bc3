package sim

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/codec"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/snapshotmeta"
	"github.com/weirflow/weir/statebackend"
	"github.com/weirflow/weir/statebackend/heap"
)

// checkedLink is a link whose checkpoint was read and found exact.
type checkedLink struct {
	link  ha.Link
	bytes int64    // that were in flight
	files []string // that it refers to, _metadata included
	whole bool     // all numbers are in it, and all timers have fired
	end   bool     // all numbers are in it
}

// contents is what a checkpoint holds.
type contents struct {
	positions map[int64]int64
	tallies   map[int64]Tally
	timers    map[int64]int
	noted     int64
	// What has finished has no state any more.
	sourcesEnded, notesEnded bool
	countersEnded            []weir.KeyGroupRange
	maxParallelism           int
}

// read reads the checkpoint of a link and compares: its counters must hold exactly
// what lies before its sources' positions, its timers what its counters lack.
func (o *Oracle) read(job weir.JobID, l ha.Link) (*checkedLink, error) {
	ctx := context.Background()
	s, err := snapshotmeta.Open(ctx, o.w.disk, l.Metadata)
	if err != nil {
		return nil, err
	}
	if s.Header.Checkpoint != l.Checkpoint || s.Header.Job != job && l.Checkpoint != o.claimed() {
		return nil, fmt.Errorf("%s is of checkpoint %d of job %s", l.Metadata, s.Header.Checkpoint, s.Header.Job)
	}
	dir := path.Dir(path.Dir(l.Metadata))
	files := snapshotmeta.Files{Store: o.w.disk, Dir: dir}
	c := &checkedLink{link: l}
	c.add(l.Metadata)
	s.Handles(func(h weir.StateHandle) {
		if _, name, foreign := snapshotmeta.CutForeign(h.File); foreign {
			c.add(name)
		} else if h.File != "" {
			c.add(path.Join(dir, h.File))
		}
	})
	if l.Checkpoint == o.claimed() {
		return c, nil // it was looked at as the other job's
	}
	if o.w.Plan.Graph != nil {
		return c, o.w.readGraph(ctx, s, c)
	}
	have := contents{positions: make(map[int64]int64), tallies: make(map[int64]Tally), timers: make(map[int64]int)}
	for i := range s.Operators {
		op := &s.Operators[i]
		if len(op.Subtasks) != op.Parallelism {
			return nil, fmt.Errorf("operator %q: %d of %d subtasks", op.Name, len(op.Subtasks), op.Parallelism)
		}
		have.noteEnded(op)
		switch op.Name {
		case opSource:
			err = have.readPositions(ctx, files, op)
		case opCount:
			err = have.readTallies(ctx, files, op)
		case opNote:
			err = have.readNoted(ctx, files, op)
		}
		if err != nil {
			return nil, fmt.Errorf("operator %q: %w", op.Name, err)
		}
	}
	if err := have.check(o.w.job.plan); err != nil {
		return nil, err
	}
	c.whole, c.end = have.whole(o.w.job.plan), have.end(o.w.job.plan)
	return c, nil
}

// noteEnded notes which subtasks have finished and are gone. One whose operators had
// only emitted their last record still has its state in the checkpoint.
func (c *contents) noteEnded(op *snapshotmeta.Operator) {
	for _, sub := range op.Subtasks {
		switch {
		case !sub.Finished || len(sub.State.Keyed)+len(sub.State.Elements) > 0:
		case op.Name == opSource:
			c.sourcesEnded = true
		case op.Name == opNote:
			c.notesEnded = true
		case op.Name == opCount:
			c.maxParallelism = op.MaxParallelism
			c.countersEnded = append(c.countersEnded, weir.KeyGroupRangeOf(op.MaxParallelism, op.Parallelism, int(sub.Index)))
		}
	}
}

// gone says whether the subtask of a key has finished.
func (c *contents) gone(key int64) bool {
	if len(c.countersEnded) == 0 {
		return false
	}
	keys, err := codec.ForKey[int64]()
	if err != nil {
		panic(err)
	}
	b, err := keys.Append(nil, &key)
	if err != nil {
		panic(err)
	}
	group := weir.KeyGroupOf(codec.Hash(b), c.maxParallelism)
	return slices.ContainsFunc(c.countersEnded, func(r weir.KeyGroupRange) bool { return r.Contains(group) })
}

// elements reads an operator's own state.
func elements(ctx context.Context, files snapshotmeta.Files, op *snapshotmeta.Operator) ([][]byte, error) {
	var all [][]byte
	for _, sub := range op.Subtasks {
		for _, h := range sub.State.Elements {
			r, err := files.Open(ctx, h)
			if err != nil {
				return nil, err
			}
			b, err := io.ReadAll(r)
			if err != nil {
				return nil, err
			}
			all = append(all, b)
		}
	}
	return all, nil
}

func (c *contents) readPositions(ctx context.Context, files snapshotmeta.Files, op *snapshotmeta.Operator) error {
	all, err := elements(ctx, files, op)
	if err != nil {
		return err
	}
	for _, b := range all {
		p, err := decodePosition(b)
		if err != nil {
			return err
		}
		if _, twice := c.positions[p.split]; twice {
			return fmt.Errorf("split %d is there twice", p.split)
		}
		c.positions[p.split] = p.next
	}
	return nil
}

func (c *contents) readNoted(ctx context.Context, files snapshotmeta.Files, op *snapshotmeta.Operator) error {
	all, err := elements(ctx, files, op)
	if err != nil {
		return err
	}
	for _, b := range all {
		if len(b) != 8 {
			return fmt.Errorf("an element of %d bytes", len(b))
		}
		c.noted += int64(binary.LittleEndian.Uint64(b))
	}
	return nil
}

// readTallies restores each subtask's keyed state into a backend of its own.
func (c *contents) readTallies(ctx context.Context, files snapshotmeta.Files, op *snapshotmeta.Operator) error {
	for _, sub := range op.Subtasks {
		groups := weir.KeyGroupRangeOf(op.MaxParallelism, op.Parallelism, int(sub.Index))
		b, err := heap.NewFactory(heap.NewPagePool(0)).New(statebackend.Options{MaxParallelism: op.MaxParallelism, KeyGroups: groups})
		if err != nil {
			return err
		}
		if err = b.Restore(ctx, sub.State.Keyed, files.Open); err == nil {
			err = c.readBackend(b)
		}
		if err != nil {
			return fmt.Errorf("subtask %d: %w", sub.Index, err)
		}
		if err := b.Close(); err != nil {
			return err
		}
	}
	return nil
}

func (c *contents) readBackend(b statebackend.Backend) error {
	keys, err := codec.ForKey[int64]()
	if err != nil {
		return err
	}
	values, err := codec.For[Tally]()
	if err != nil {
		return err
	}
	scan := func(state string, fixed int, each func(key int64, value []byte) error) error {
		schema, ok := b.RestoredSchema(state)
		if !ok {
			return nil // nothing was there yet
		}
		t, err := b.Table(statebackend.Descriptor{Name: state, FixedSize: fixed, Schema: schema})
		if err != nil {
			return err
		}
		t.Scan(func(_ weir.KeyGroup, key, _, value []byte) bool {
			var k int64
			if err = keys.Decode(key, &k); err == nil {
				err = each(k, value)
			}
			return err == nil
		})
		return err
	}
	err = scan(stateTally, values.FixedSize(), func(key int64, value []byte) error {
		var t Tally
		if _, twice := c.tallies[key]; twice {
			return fmt.Errorf("key %d is there twice", key)
		}
		err := values.GetFixed(value, &t)
		c.tallies[key] = t
		return err
	})
	if err != nil {
		return err
	}
	return scan(stateTimers, 1, func(key int64, _ []byte) error { c.timers[key]++; return nil })
}

// check compares what a checkpoint holds with the closed form.
func (c *contents) check(p JobPlan) error {
	for split := range int64(p.Splits) {
		if _, there := c.positions[split]; !there && c.sourcesEnded {
			c.positions[split] = int64(p.Numbers)
		}
	}
	if len(c.positions) != p.Splits {
		return fmt.Errorf("%d splits, want %d: %v", len(c.positions), p.Splits, c.positions)
	}
	var total int64
	for _, next := range c.positions {
		total += next
	}
	want := p.expect(c.positions)
	maps.DeleteFunc(want, func(key int64, _ Tally) bool { return c.gone(key) })
	if diff := differences(c.tallies, want); diff != "" {
		return fmt.Errorf("not exactly once: sources are at %v; %s", c.positions, diff)
	}
	if c.noted != total && !c.notesEnded && len(c.countersEnded) == 0 {
		return fmt.Errorf("not exactly once: %d numbers were emitted and counted, %d counts were noted", total, c.noted)
	}
	for key, t := range c.tallies {
		set := 1
		if t.Fired >= int64(p.Timers) {
			set = 0
		}
		if c.timers[key] != set {
			return fmt.Errorf("timer of key %d fired %d times of %d, and %d are set", key, t.Fired, p.Timers, c.timers[key])
		}
	}
	return nil
}

// whole says whether this is the end: all numbers, all timers.
func (c *contents) whole(p JobPlan) bool {
	if !c.end(p) {
		return false
	}
	for _, t := range c.tallies {
		if t.Fired < int64(p.Timers) {
			return false
		}
	}
	return true
}

// end says whether all numbers are in it.
func (c *contents) end(p JobPlan) bool {
	for _, next := range c.positions {
		if next < int64(p.Numbers) {
			return false
		}
	}
	return len(c.positions) == p.Splits
}

// blobs are the names of all blobs, sorted.
func (w *World) blobs() []string {
	var names []string
	err := w.disk.List(context.Background(), "", func(i blobstore.Info) error {
		names = append(names, i.Name)
		return nil
	})
	if err != nil {
		w.fail("list blobs: %v", err)
	}
	return names
}
