package flow

import (
	"fmt"

	"github.com/weirflow/weir/codec"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/statebackend"
)

// writer encodes records into an output without keys. The value is encoded from a
// place of its own, so that the argument needs no memory.
func writer[T any](m *member, out operator.Output, c *codec.Codec[T]) func(T) {
	r, place, buf := m.run, new(T), []byte(nil)
	return func(v T) {
		*place = v
		var err error
		if buf, err = c.Append(buf[:0], place); err != nil {
			m.fail(err)
			return
		}
		out.Emit(0, r.ts, buf)
	}
}

// keyWriter encodes records into an output that is partitioned by key. It runs in
// the producer's chain; a failure of the key function is said to be the key's.
func keyWriter[K comparable, T any](m *member, out operator.Output, c *codec.Codec[T], k KeyedStream[K, T]) func(T) {
	r := m.run
	at := r.addSite(site{operator: m.node.logical.Name, key: k.name})
	place, keyPlace := new(T), new(K)
	buf, keyBuf := []byte(nil), []byte(nil)
	return func(v T) {
		*place = v
		r.at = at
		*keyPlace = k.key(v)
		var err error
		if keyBuf, err = appendKey(k.keys, keyBuf[:0], keyPlace); err != nil {
			r.fail(at, err)
			return
		}
		if buf, err = c.Append(buf[:0], place); err != nil {
			r.fail(at, err)
			return
		}
		out.Emit(codec.Hash(keyBuf), r.ts, buf)
	}
}

// appendKey encodes a key that a user's function made, and bounds its length.
func appendKey[K comparable](c *codec.Codec[K], b []byte, key *K) ([]byte, error) {
	b, err := c.Append(b, key)
	if err == nil && len(b) > statebackend.MaxKeyBytes {
		err = fmt.Errorf("encoded in %d bytes; a key has at most %d", len(b), statebackend.MaxKeyBytes)
	}
	return b, err
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
