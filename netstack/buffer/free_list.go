package buffer

// freeList holds buffers that are free. The one that has been free for longest is taken
// first: the cores that read it last have other things in their caches by then, so that
// whoever fills it need not wait, cache line by cache line, for them to give it up.
type freeList struct {
	ring     []*Buffer
	first, n int
}

func (l *freeList) push(b *Buffer) {
	if l.n == len(l.ring) {
		ring := make([]*Buffer, max(8, 2*l.n))
		k := copy(ring, l.ring[l.first:])
		copy(ring[k:], l.ring[:l.first])
		l.ring, l.first = ring, 0
	}
	i := l.first + l.n
	if i >= len(l.ring) {
		i -= len(l.ring)
	}
	l.ring[i] = b
	l.n++
}

// pop returns nil if there is none.
func (l *freeList) pop() *Buffer {
	if l.n == 0 {
		return nil
	}
	b := l.ring[l.first]
	l.ring[l.first] = nil
	l.n--
	if l.first++; l.first == len(l.ring) {
		l.first = 0
	}
	return b
}
