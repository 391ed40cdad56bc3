package flow

import (
	"bytes"
	"errors"
	"fmt"
	"unsafe"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/codec"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/statebackend"
)

// Value is one value for each key. Its methods are about the current key. What they
// return is a copy and may be kept; what they are given is copied.
//
// Values of types without pointers (integers, floats, booleans, and structs and
// arrays of them) of at most 4096 bytes lie in the state as they are, which is
// several times faster than others.
type Value[T any] struct {
	name  string
	codec *codec.Codec[T]
	m     *member
	at    *cursor
	table statebackend.Table
	plain statebackend.Plain // table, if it is both that and of fixed size
	// inPlace says that values lie in plain as they do in a program's memory, where
	// they are aligned to 8 bytes, and that any bytes are a value.
	inPlace bool
	place   *T // what is encoded and decoded, so that arguments need no memory
	buf     []byte
	hints   *[operator.BatchSize]statebackend.Hint
	none    T
}

// NewValue declares a value state.
func NewValue[T any](s *Setup, name string) *Value[T] {
	v := &Value[T]{name: name, place: new(T)}
	state := jobgraph.State{Name: name, Kind: "value"}
	var err error
	if v.codec, err = codec.For[T](); err != nil {
		s.node.fault("state %q: %s", name, err)
	} else {
		state.Value = v.schema()
	}
	s.declare(state, v)
	return v
}

func (v *Value[T]) schema() string {
	if v.codec.FixedSize() > 0 {
		return v.codec.FixedSchema()
	}
	return v.codec.Schema()
}

func (v *Value[T]) bind(m *member, b statebackend.Backend, at *cursor) error {
	var key string
	for _, s := range m.node.logical.States {
		if s.Name == v.name {
			key = s.Key
		}
	}
	schema := weir.StateSchema{State: v.name, Key: key, Value: v.schema()}
	if old, restored := b.RestoredSchema(v.name); restored && (old.Key != schema.Key || old.Value != schema.Value) {
		return fmt.Errorf("state %q was written with key %s and value %s, and is now key %s and value %s", v.name, old.Key, old.Value, schema.Key, schema.Value)
	}
	var err error
	v.table, err = b.Table(statebackend.Descriptor{Name: v.name, FixedSize: v.codec.FixedSize(), Schema: schema})
	if err != nil {
		return fmt.Errorf("state %q: %w", v.name, err)
	}
	if v.codec.FixedSize() > 0 {
		v.plain, _ = v.table.(statebackend.Plain)
		v.inPlace = v.codec.IsMemory()
	}
	v.m, v.at, v.hints = m, at, new([operator.BatchSize]statebackend.Hint)
	return nil
}

func (v *Value[T]) prefetch(hashes []uint64, first int) {
	v.table.Prefetch(hashes, v.hints[first:first+len(hashes)])
}

func (v *Value[T]) eachKey(fn func(key []byte) bool) {
	v.table.Scan(func(_ weir.KeyGroup, key, _, _ []byte) bool { return fn(key) })
}

// hint returns what is known of the current key's place.
func (v *Value[T]) hint() statebackend.Hint {
	if v.at != nil && v.at.index >= 0 {
		return v.hints[v.at.index]
	}
	if v.at == nil || v.at.index == withoutKey {
		v.misuse()
	}
	return statebackend.Hint{}
}

func (v *Value[T]) misuse() { panic(fmt.Errorf("state %q: %w", v.name, errNoKey)) }

var errNoKey = errors.New("used where there is no key: outside of Process and OnTimer")

// Get returns the value, or the zero value if there is none.
func (v *Value[T]) Get() T {
	w, _ := v.Lookup()
	return w
}

// Lookup returns the value and whether there is one.
func (v *Value[T]) Lookup() (T, bool) {
	var b []byte
	var ok bool
	if hint := v.hint(); v.plain != nil {
		b, ok = v.plain.GetPlain(v.at.hash, v.at.key, hint)
	} else {
		b, ok = v.table.Get(v.at.ref(), hint)
	}
	if !ok {
		return v.none, false
	}
	if !v.decode(b) {
		return v.none, false
	}
	return *v.place, true
}

// decode reads an encoded value into place. The bytes are the table's, so values
// that would refer to them are decoded from a copy.
func (v *Value[T]) decode(b []byte) bool {
	var err error
	if v.codec.FixedSize() == 0 {
		*v.place = v.none // fields that are left out of the encoding must not stay
	}
	switch {
	case v.codec.FixedSize() > 0:
		err = v.codec.GetFixed(b, v.place)
	case v.codec.HasPointers():
		err = v.codec.Decode(bytes.Clone(b), v.place)
	default:
		err = v.codec.Decode(b, v.place)
	}
	if err != nil {
		v.broken(err)
	}
	return err == nil
}

// broken fails the task: the table holds bytes that are no value.
func (v *Value[T]) broken(err error) {
	v.m.run.failSystem(v.m.site, fmt.Errorf("state %q: %w", v.name, err))
}

// Set sets the value.
func (v *Value[T]) Set(w T) {
	hint := v.hint()
	*v.place = w
	v.store(hint)
}

// slot returns the current key's value in the table, as it lies there.
func (v *Value[T]) slot(hint statebackend.Hint) []byte {
	if v.plain != nil {
		slot, _ := v.plain.SlotPlain(v.at.hash, v.at.key, hint)
		return slot
	}
	slot, _ := v.table.Slot(v.at.ref(), hint)
	return slot
}

// store writes what is in place.
func (v *Value[T]) store(hint statebackend.Hint) {
	if v.codec.FixedSize() > 0 {
		v.codec.PutFixed(v.slot(hint), v.place)
		return
	}
	var err error
	if v.buf, err = v.codec.Append(v.buf[:0], v.place); err != nil {
		v.m.fail(fmt.Errorf("state %q: %w", v.name, err))
		return
	}
	if len(v.buf) > statebackend.MaxValueBytes {
		v.m.fail(fmt.Errorf("state %q: a value of %d bytes; the most is %d", v.name, len(v.buf), statebackend.MaxValueBytes))
		return
	}
	v.table.Put(v.at.ref(), hint, v.buf)
}

// Update lets fn change the value, which is the zero value if there was none. It is
// the fastest way to change a value without pointers, since the entry is looked up
// once. fn must use no other state, and not keep the pointer: it may lead to the state
// itself, whose memory is another key's later on.
func (v *Value[T]) Update(fn func(w *T)) {
	if v.plain == nil || v.at.index < 0 {
		v.update(fn)
		return
	}
	slot, _ := v.plain.SlotPlain(v.at.hash, v.at.key, v.hints[v.at.index])
	if v.inPlace {
		fn((*T)(unsafe.Pointer(unsafe.SliceData(slot))))
		return
	}
	if err := v.codec.GetFixed(slot, v.place); err != nil {
		v.broken(err)
		return
	}
	fn(v.place)
	v.codec.PutFixed(slot, v.place)
}

// update is Update of what is not prefetched, or encoded.
func (v *Value[T]) update(fn func(w *T)) {
	hint := v.hint()
	if v.codec.FixedSize() == 0 {
		*v.place = v.Get()
		fn(v.place)
		v.store(hint)
		return
	}
	if slot := v.slot(hint); v.decode(slot) {
		fn(v.place)
		v.codec.PutFixed(slot, v.place)
	}
}

// Clear removes the value.
func (v *Value[T]) Clear() {
	v.hint() // there must be a key
	v.table.Delete(v.at.ref())
}
