package partition

import (
	"github.com/weirflow/weir"
	"github.com/weirflow/weir/codec"
	"github.com/weirflow/weir/netstack/wire"
)

// Appender encodes records of a keyed output where they are sent from, in the segment
// that is being filled. Everything else is [ResultPartition.Emit]'s. It is for the task's
// goroutine.
type Appender struct {
	p      *ResultPartition
	groups []*writer // of each key group
}

// newAppender returns nil for partitions that have to look at each record.
func newAppender(p *ResultPartition) *Appender {
	if p.partitioning != Hash || p.eachRecord {
		return nil
	}
	a := &Appender{p: p, groups: make([]*writer, len(p.owner))}
	for g, to := range p.owner {
		a.groups[g] = &p.writers[to]
	}
	return a
}

// Appender returns the partition's, nil if all records are to be emitted.
func (p *ResultPartition) Appender() *Appender { return p.appender }

// Append appends one record with a flat value. It returns false, and has done nothing, if
// the record must be emitted instead: it does not fit into the segment, or somebody waits
// for a flush.
func (a *Appender) Append(hash uint64, timestamp int64, v codec.Value) bool {
	size := v.Size()
	p, w := a.p, a.groups[weir.KeyGroupOf(hash, len(a.groups))]
	free := w.data[w.pos:]
	if wire.MaxElementHead+size > len(free) || p.flush.Load() {
		return false
	}
	n := wire.PutKeyedHead((*[wire.MaxElementHead]byte)(free), hash, w.base, timestamp, size)
	end := n + size
	w.pos += end
	p.records++
	v.Put(free[n:end])
	return true
}
