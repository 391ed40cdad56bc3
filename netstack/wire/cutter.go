package wire

import "github.com/weirflow/weir/internal/planted"

// keptRest is how many bytes of memory a Cutter keeps for the next element that spans views:
// one large record must not cost its channel as much for ever (B61).
const keptRest = 32 * MaxPayload

// Cutter cuts what arrives on one channel into elements. Its owner feeds it a view's
// bytes, takes elements until there is none, and feeds it the next.
type Cutter struct {
	// Keyed says whether records of this channel carry a hash.
	Keyed bool
	// Reuse lets the payload of an element that spans views be overwritten by the
	// next such element; else each has memory of its own.
	Reuse bool

	b        []byte // what is left of the bytes that were fed last
	base     int64  // their base timestamp
	rest     []byte // the beginning of an element that continues in b or after it
	restBase int64  // base timestamp of the segment where it begins
	whole    bool   // rest was given out
}

// Feed gives the cutter the next bytes of the channel. The bytes fed before must
// have been used up: Next returned false.
func (c *Cutter) Feed(b []byte, base int64) { c.b, c.base = b, base }

// Next returns the next element, whose payload aliases what was fed, or memory of
// the cutter if it spans views. It returns false when more bytes are needed.
func (c *Cutter) Next(e *Element) (bool, error) {
	if c.whole {
		c.whole = false
		if c.Reuse && cap(c.rest) <= keptRest {
			c.rest = c.rest[:0]
		} else {
			c.rest = nil
		}
	}
	if len(c.rest) > 0 {
		return c.complete(e)
	}
	n, err := Cut(c.b, c.base, c.Keyed, e)
	if err != nil {
		return false, err
	}
	if n <= len(c.b) {
		c.b = c.b[n:]
		return true, nil
	}
	if len(c.b) > 0 && planted.Is(planted.HalfRecordDropped) {
		c.b = nil
	}
	if len(c.b) > 0 {
		c.grow(n, len(c.b))
		c.rest, c.restBase = append(c.rest, c.b...), c.base
		c.b = nil
	}
	return false, nil
}

// complete adds bytes to the element that was cut off until it is whole.
func (c *Cutter) complete(e *Element) (bool, error) {
	for {
		n, err := Cut(c.rest, c.restBase, c.Keyed, e)
		if err != nil {
			return false, err
		}
		missing := n - len(c.rest)
		if missing <= 0 {
			c.whole = true
			return true, nil
		}
		if len(c.b) == 0 {
			return false, nil
		}
		take := min(missing, len(c.b))
		c.grow(n, take)
		c.rest = append(c.rest, c.b[:take]...)
		c.b = c.b[take:]
	}
}

// grow makes room for so many more bytes of an element of n, and for as many as there are
// already: a length is only believed as far as bytes follow it.
func (c *Cutter) grow(n, more int) {
	if len(c.rest)+more > cap(c.rest) {
		room := max(len(c.rest)+more, min(n, 2*(len(c.rest)+MaxPayload)))
		c.rest = append(make([]byte, 0, room), c.rest...)
	}
}

// Rest returns the bytes that were fed and not cut into elements, in two pieces: the
// beginning of an element, with the base timestamp where it begins, and what follows.
func (c *Cutter) Rest() (begun []byte, begunBase int64, left []byte, leftBase int64) {
	if c.whole {
		return nil, 0, c.b, c.base
	}
	return c.rest, c.restBase, c.b, c.base
}
