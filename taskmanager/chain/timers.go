package chain

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/codec"
	"github.com/weirflow/weir/internal/assert"
	"github.com/weirflow/weir/internal/planted"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/statebackend"
)

// TimerState is the name of the table that holds an operator's timers. No user's
// state can have it.
const TimerState = "weir/processing-timers"

// Timers are the processing-time timers of one operator.
type Timers struct {
	table statebackend.Table
	fire  func(hash uint64, key []byte, at int64) error
	now   func() time.Time
	// changed is called when the earliest time became earlier.
	changed func()
	index   index
	key     []byte // of the timer that fires
	ns      [8]byte
}

var _ operator.TimerService = (*Timers)(nil)

// TimersOptions are what timers are made of.
type TimersOptions struct {
	Backend statebackend.Backend
	// Fire is called for each due timer.
	Fire func(hash uint64, key []byte, at int64) error
	// Now is the clock.
	Now func() time.Time
	// Changed is called when the earliest time became earlier.
	Changed func()
}

// NewTimers returns the timers of the operator with this backend, with what was
// restored of them.
func NewTimers(o TimersOptions) (*Timers, error) {
	table, err := o.Backend.Table(statebackend.Descriptor{
		Name:      TimerState,
		FixedSize: 1,
		Schema:    weir.StateSchema{State: TimerState, Key: "bytes", Value: "timer/1"},
	})
	if err != nil {
		return nil, fmt.Errorf("timers: %w", err)
	}
	t := &Timers{table: table, fire: o.Fire, now: o.Now, changed: o.Changed}
	if planted.Is(planted.TimersNotRestored) {
		return t, nil
	}
	if err := t.rebuild(); err != nil {
		return nil, err
	}
	return t, nil
}

// Now is the processing time in milliseconds since the Unix epoch.
func (t *Timers) Now() int64 { return t.now().UnixMilli() }

// Register sets a timer. One that is set already stays as it is.
func (t *Timers) Register(hash uint64, key []byte, at int64) {
	value, created := t.table.Slot(t.ref(hash, key, at), statebackend.Hint{})
	if !created {
		return
	}
	value[0] = 1
	earlier := t.index.empty() || at < t.index.first().at
	t.index.push(hash, key, at)
	if earlier {
		t.changed()
	}
}

// Delete removes a timer, if it is set. Its place in the index is given up when its
// time comes, or when the index has too many such.
func (t *Timers) Delete(hash uint64, key []byte, at int64) {
	if !t.table.Delete(t.ref(hash, key, at)) {
		return
	}
	const slack = 64
	if t.index.len() > 2*t.table.Len()+slack {
		err := t.rebuild()
		assert.That(err == nil, "the table of timers holds something else")
	}
}

// Next returns when the earliest timer is due, in milliseconds since the Unix epoch.
// It may name a timer that was deleted.
func (t *Timers) Next() (at int64, ok bool) {
	if t.index.empty() {
		return 0, false
	}
	return t.index.first().at, true
}

// Fire fires timers that are due, at most max, and none after enough says so once one was
// fired. More may be due then.
func (t *Timers) Fire(max int, enough func() bool) (more bool, err error) {
	now := t.Now()
	for n := 0; !t.index.empty() && t.index.first().at <= now; n++ {
		if n == max || n > 0 && enough() {
			return true, nil
		}
		var e entry
		e, t.key = t.index.pop(t.key[:0])
		if !t.table.Delete(t.ref(e.hash, t.key, e.at)) {
			continue // deleted since
		}
		if err := t.fire(e.hash, t.key, e.at); err != nil {
			return true, err
		}
	}
	return false, nil
}

// Len is the number of timers that are set.
func (t *Timers) Len() int { return t.table.Len() }

func (t *Timers) ref(hash uint64, key []byte, at int64) statebackend.Ref {
	putTime(t.ns[:], at)
	return statebackend.Ref{Hash: hash, Key: key, Namespace: t.ns[:]}
}

// rebuild makes the index of the table.
func (t *Timers) rebuild() (err error) {
	t.index.clear()
	t.table.Scan(func(_ weir.KeyGroup, key, namespace, _ []byte) bool {
		if len(namespace) != len(t.ns) {
			err = fmt.Errorf("timers: an entry has a namespace of %d bytes, want %d", len(namespace), len(t.ns))
			return false
		}
		t.index.push(codec.Hash(key), key, getTime(namespace))
		return true
	})
	return err
}

// Times are stored so that their bytes have the order of the times.
func putTime(b []byte, at int64)  { binary.BigEndian.PutUint64(b, uint64(at)^(1<<63)) }
func getTime(b []byte) (at int64) { return int64(binary.BigEndian.Uint64(b) ^ (1 << 63)) }
