package flow

import (
	"fmt"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/codec"
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
// the producer's chain; a failure of the key function is said to be the key's.
func keyWriter[K comparable, T any](m *member, out operator.Output, c *codec.Codec[T], k KeyedStream[K, T]) func(T) {
	w := &keyedWriter[K, T]{r: m.run, out: out, values: c, keys: k.keys, key: k.key}
	w.at = w.r.addSite(site{operator: m.node.logical.Name, part: k.part(), fault: weir.FaultUser})
	if c.Local() && k.keys.Local() {
		return w.local()
	}
	w.value, w.k = new(T), new(K)
	return w.write
}

// keyedWriter is the end of a chain at a keyed edge.
type keyedWriter[K comparable, T any] struct {
	r           *run
	at          int // site of the key function
	out         operator.Output
	values      *codec.Codec[T]
	keys        *codec.Codec[K]
	key         func(T) K
	buf, keyBuf []byte
	// value and k are where arguments lie that must not lie on the stack.
	value *T
	k     *K
}

// local is the writer that encodes its argument where it lies: copying it would cost
// more than encoding it. It is a closure since a method value costs a call more.
func (w *keyedWriter[K, T]) local() func(T) {
	r, out, at, keyOf, keys, values := w.r, w.out, w.at, w.key, w.keys, w.values
	return func(v T) {
		r.at = at
		key := keyOf(v)
		hash, ok := keys.HashText(&key)
		if !ok {
			var err error
			w.keyBuf, err = keys.AppendLocal(w.keyBuf[:0], &key)
			if hash, ok = w.hash(err); !ok {
				return
			}
		}
		buf, err := values.AppendLocal(w.buf[:0], &v)
		if err != nil {
			r.fail(at, err)
			return
		}
		if cap(buf) > cap(w.buf) {
			w.buf = buf
		}
		out.Emit(hash, r.ts, buf)
	}
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
