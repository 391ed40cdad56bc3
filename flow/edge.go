package flow

import (
	"fmt"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/codec"
	"github.com/weirflow/weir/netstack/partition"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/statebackend"
)

// writer encodes records into an output without keys. The argument is encoded where
// it lies, on the stack, unless user code would see its address.
func writer[T any](m *member, out operator.Output, c *codec.Codec[T]) func(T) {
	r, buf := m.run, []byte(nil)
	write := func(err error) {
		if err != nil {
			m.fail(err)
			return
		}
		out.Emit(0, r.ts, buf)
	}
	if c.Local() {
		return func(v T) {
			var err error
			buf, err = c.AppendLocal(buf[:0], &v)
			write(err)
		}
	}
	place := new(T)
	return func(v T) {
		*place = v
		var err error
		buf, err = c.Append(buf[:0], place)
		write(err)
	}
}

// router encodes records into an output whose subpartition the user's function
// chooses.
func router[T any](m *member, out operator.Output, c *codec.Codec[T], name string, route func(T, int) int) func(T) {
	r, place, buf := m.run, new(T), []byte(nil)
	at := r.addSite(site{operator: m.node.logical.Name, part: fmt.Sprintf("partitioner %q", name), fault: weir.FaultUser})
	n := out.Subpartitions()
	return func(v T) {
		*place = v
		r.at = at
		to := route(v, n)
		if to < 0 || to >= n {
			r.fail(at, fmt.Errorf("it chose subtask %d of %d", to, n))
			return
		}
		var err error
		if buf, err = c.Append(buf[:0], place); err != nil {
			m.fail(err)
			return
		}
		out.EmitTo(to, r.ts, buf)
	}
}

// keyWriter encodes records into an output that is partitioned by key. It runs in
// the producer's chain; a failure of the key function is said to be the key's. It is a
// func(T), or a sourceEnd[T].
func keyWriter[K comparable, T any](m *member, out operator.Output, c *codec.Codec[T], k KeyedStream[K, T]) any {
	w := &keyedWriter[K, T]{r: m.run, out: out, values: c, keys: k.keys, key: k.key}
	w.at = w.r.addSite(site{operator: m.node.logical.Name, part: k.part(), fault: weir.FaultUser})
	if !c.Local() || !k.keys.Local() {
		w.value, w.k = new(T), new(K)
		return w.write
	}
	if w.appender = out.Appender(); w.appender != nil && c.Flat() {
		return w
	}
	return w.local()
}

// keyedWriter is the end of a chain at a keyed edge.
type keyedWriter[K comparable, T any] struct {
	r           *run
	at          int // site of the key function
	out         operator.Output
	values      *codec.Codec[T]
	keys        *codec.Codec[K]
	key         func(T) K
	appender    *partition.Appender // used if values are flat; may be nil
	buf, keyBuf []byte
	// value and k are where arguments lie that must not lie on the stack.
	value *T
	k     *K
}

// local is the writer that encodes its argument where it lies: copying it would cost
// more than encoding it. It is a closure since a method value costs a call more, and made
// by a function that is not inlined since what is called in a copy of it would not be.
//
//go:noinline
func (w *keyedWriter[K, T]) local() func(T) {
	return func(v T) {
		w.r.at = w.at
		key := w.key(v)
		hash, ok := w.keys.HashText(&key)
		if !ok {
			hash, ok = w.hashLocal(&key)
		}
		if ok {
			w.emit(hash, w.r.ts, v)
		}
	}
}

// step is local with an appender, for what it takes.
//
//go:noinline
func (w *keyedWriter[K, T]) step() func(T) {
	return func(v T) {
		w.r.at = w.at
		key := w.key(v)
		hash, ok := w.keys.HashText(&key)
		if !ok {
			hash, ok = w.hashLocal(&key)
		}
		if ok && !w.appender.Append(hash, w.r.ts, w.values.Value(&v)) {
			w.emit(hash, w.r.ts, v)
		}
	}
}

// source is step as a reader calls it: see [sourceEnd].
//
//go:noinline
func (w *keyedWriter[K, T]) source(s *sourceStep[T]) func(int64, T) bool {
	return func(ts int64, v T) bool {
		w.r.at = w.at
		key := w.key(v)
		hash, ok := w.keys.HashText(&key)
		if !ok {
			hash, ok = w.hashLocal(&key)
		}
		if ok && !w.appender.Append(hash, ts, w.values.Value(&v)) {
			w.emit(hash, ts, v)
		}
		return s.emitted()
	}
}

// emit encodes a record on its own.
//
//go:noinline
func (w *keyedWriter[K, T]) emit(hash uint64, ts int64, v T) {
	buf, err := w.values.AppendLocal(w.buf[:0], &v)
	if err != nil {
		w.r.fail(w.at, err)
		return
	}
	if cap(buf) > cap(w.buf) {
		w.buf = buf
	}
	w.out.Emit(hash, ts, buf)
}

// hashLocal encodes and hashes a key on the stack; false after a failure.
//
//go:noinline
func (w *keyedWriter[K, T]) hashLocal(k *K) (hash uint64, ok bool) {
	var err error
	w.keyBuf, err = w.keys.AppendLocal(w.keyBuf[:0], k)
	return w.hash(err)
}

func (w *keyedWriter[K, T]) write(v T) {
	*w.value = v
	w.r.at = w.at
	*w.k = w.key(v)
	var err error
	w.keyBuf, err = w.keys.Append(w.keyBuf[:0], w.k)
	hash, ok := w.hash(err)
	if !ok {
		return
	}
	if w.buf, err = w.values.Append(w.buf[:0], w.value); err != nil {
		w.r.fail(w.at, err)
		return
	}
	w.out.Emit(hash, w.r.ts, w.buf)
}

// hash is that of the encoded key; false after a failure.
func (w *keyedWriter[K, T]) hash(err error) (hash uint64, ok bool) {
	if err == nil {
		err = checkKey(w.keyBuf)
	}
	if err != nil {
		w.r.fail(w.at, err)
		return 0, false
	}
	return codec.Hash(w.keyBuf), true
}

// checkKey bounds the length of a key that a user's function made.
func checkKey(b []byte) error {
	if len(b) > statebackend.MaxKeyBytes {
		return fmt.Errorf("encoded in %d bytes; a key has at most %d", len(b), statebackend.MaxKeyBytes)
	}
	return nil
}

// plainHead decodes a batch for an operator without a key. Between two records it
// looks once whether the task wants it to return.
func plainHead[T any](m *member, first func(T), c *codec.Codec[T]) headFunc {
	r, place := m.run, new(T)
	return func(b *operator.Batch) {
		start := b.Next
		for i := start; i < b.N; {
			if err := c.Decode(b.Payload[i], place); err != nil {
				r.failSystem(m.site, err)
				break
			}
			r.ts = b.Timestamp[i]
			first(*place)
			i++
			b.Next = i
			if r.err != nil || r.suspend.Load() {
				break
			}
		}
		m.in += int64(b.Next - start)
	}
}
