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
	b, at, keyed := c.b, 0, c.Keyed
	for ; n < len(payload); n++ {
		// Almost all records are less than 16 KB and have a time near the base: then all
		// that stands before the hash is in the first few bytes.
		if at <= len(b)-16 {
			w := binary.LittleEndian.Uint64(b[at:])
			body, end, delta := at+3, at+1+int(w&0x7f), w>>16&0x7f
			if w&0x80 != 0 {
				w >>= 8
				body++
				end += 1 + int(w&0xff)<<7 // at least 16 KB if a third byte follows
				delta = w >> 16 & 0x7f
			}
			if w&0x800000 != 0 {
				delta |= w >> 24 & 0xff << 7
				body++
			}
			h := uint64(0)
			if keyed {
				h = binary.LittleEndian.Uint64(b[body:])
				body += 8
			}
			if Kind(w>>8) == KindTimedRecord && body <= end && end <= len(b) && end-at < 1<<14 && delta < 1<<14 {
				hash[n], timestamp[n], payload[n] = h, c.base+unzigzag(delta), b[body:end:end]
				at = end
				continue
			}
		}
		h, t, body, end := c.cutShort(b[at:])
		if end == 0 {
			break
		}
		hash[n], timestamp[n], payload[n] = h, t, b[at+body:at+end:at+end]
		at += end
	}
	c.b = b[at:]
	return n
}

// cutShort cuts a record whose length takes one or two bytes. end is 0 if it is longer,
// malformed, not whole or no record.
func (c *Cutter) cutShort(b []byte) (hash uint64, at int64, body, end int) {
	size, k := shortUvarint(b)
	end = k + int(size)
	if k == 0 || size == 0 || end > len(b) {
		return 0, 0, 0, 0
	}
	body = k + 1
	switch Kind(b[k]) {
	case KindTimedRecord:
		delta, k := binary.Uvarint(b[body:end])
		if k <= 0 {
			return 0, 0, 0, 0
		}
		at = c.base + unzigzag(delta)
		body += k
	case KindRecord:
		at = NoTimestamp
	default:
		return 0, 0, 0, 0
	}
	if c.Keyed {
		if end-body < 8 {
			return 0, 0, 0, 0
		}
		hash = binary.LittleEndian.Uint64(b[body:])
		body += 8
	}
	return hash, at, body, end
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
