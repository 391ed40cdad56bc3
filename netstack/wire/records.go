package wire

import "encoding/binary"

// Records cuts whole records from the bytes that were fed last, into columns of one
// length, and returns how many there are. It stops at the end of the columns and
// before everything that is out of the ordinary (an element that is no record, not
// whole, malformed, or begun before): that is for Next. It is Next for many records at
// once, at a third of the cost.
func (c *Cutter) Records(hash []uint64, timestamp []int64, payload [][]byte) (n int) {
	if c.whole || len(c.rest) > 0 {
		return 0
	}
	hash, timestamp = hash[:len(payload)], timestamp[:len(payload)]
	b := c.b
	for ; n < len(payload); n++ {
		element, rest := cutShort(b)
		at, body := c.base, 1
		switch {
		case len(element) == 0:
			body = 0
		case Kind(element[0]) == KindTimedRecord:
			delta, k := shortUvarint(element[1:])
			if k == 0 {
				delta, k = binary.Uvarint(element[1:])
			}
			at += unzigzag(delta)
			if body += k; k <= 0 {
				body = 0
			}
		case Kind(element[0]) == KindRecord:
			at = NoTimestamp
		default:
			body = 0
		}
		if body == 0 || c.Keyed && len(element) < body+8 {
			break
		}
		hash[n] = 0
		if c.Keyed {
			hash[n] = binary.LittleEndian.Uint64(element[body:])
			body += 8
		}
		timestamp[n], payload[n] = at, element[body:]
		b = rest
	}
	c.b = b
	return n
}

// cutShort cuts an element whose length takes one or two bytes; nothing if it is
// longer or not whole.
func cutShort(b []byte) (element, rest []byte) {
	size, k := shortUvarint(b)
	if end := k + int(size); k > 0 && end <= len(b) {
		return b[k:end:end], b[end:]
	}
	return nil, nil
}

// shortUvarint reads a number of one or two bytes; k is 0 if it is longer.
func shortUvarint(b []byte) (v uint64, k int) {
	switch {
	case len(b) > 0 && b[0] < 0x80:
		return uint64(b[0]), 1
	case len(b) > 1 && b[1] < 0x80:
		return uint64(b[0]&0x7f) | uint64(b[1])<<7, 2
	}
	return 0, 0
}
