package codec

import "unsafe"

// MaxFixedSize is the largest fixed-size form.
const MaxFixedSize = 4096

// layout is the fixed-size form of a pointer-free type: the fields in their order,
// little-endian, without padding. Since the machines we build for are little-endian
// with 64-bit integers, it is a list of copies.
type layout struct {
	size   int
	pieces []piece
}

// piece is a run of bytes that lie together in memory and in the form.
type piece struct {
	off  uintptr // in memory
	at   int     // in the form
	size int
	bool bool // a single boolean, checked when read
}

// layoutOf returns nil for types without such a form.
func layoutOf(p *program) *layout {
	if p.pointers {
		return nil
	}
	l := &layout{}
	if !l.add(p, 0) || l.size == 0 {
		return nil
	}
	return l
}

// add adds a program's values at an offset in memory; false if there is no form.
func (l *layout) add(p *program, base uintptr) bool {
	for i := range p.ops {
		o := &p.ops[i]
		off := base + o.off
		switch o.kind {
		case opBool:
			l.piece(piece{off: off, size: 1, bool: true})
		case opByte:
			l.piece(piece{off: off, size: 1})
		case opInt16, opUint16:
			l.piece(piece{off: off, size: 2})
		case opInt32, opUint32, opFloat32, opKeyFloat32:
			l.piece(piece{off: off, size: 4})
		case opInt64, opUint64, opFloat64, opKeyFloat64:
			l.piece(piece{off: off, size: 8})
		case opRaw:
			l.piece(piece{off: off, size: o.extra.count})
		case opArray:
			if o.extra.elem.min == 0 {
				continue
			}
			for j := range o.extra.count {
				if !l.add(o.extra.elem, off+uintptr(j)*o.extra.size) {
					return false
				}
			}
		default:
			return false
		}
		if l.size > MaxFixedSize {
			return false
		}
	}
	return true
}

// piece appends a piece, or lengthens the last one.
func (l *layout) piece(p piece) {
	p.at = l.size
	l.size += p.size
	if n := len(l.pieces); n > 0 && !p.bool {
		last := &l.pieces[n-1]
		if !last.bool && last.off+uintptr(last.size) == p.off {
			last.size += p.size
			return
		}
	}
	l.pieces = append(l.pieces, p)
}

// isMemory says whether the form is the value as it lies in memory, and any bytes are
// a value.
func (l *layout) isMemory(size uintptr) bool {
	return l != nil && len(l.pieces) == 1 && !l.pieces[0].bool && l.pieces[0].off == 0 && uintptr(l.size) == size
}

func (l *layout) put(dst []byte, base unsafe.Pointer) {
	dst = dst[:l.size]
	for i := range l.pieces {
		p := &l.pieces[i]
		copy(dst[p.at:p.at+p.size], unsafe.Slice((*byte)(unsafe.Add(base, p.off)), p.size))
	}
}

func (l *layout) get(src []byte, base unsafe.Pointer) error {
	if len(src) != l.size {
		return errFixed
	}
	for i := range l.pieces {
		p := &l.pieces[i]
		if p.bool && src[p.at] > 1 {
			return errBool
		}
		copy(unsafe.Slice((*byte)(unsafe.Add(base, p.off)), p.size), src[p.at:p.at+p.size])
	}
	return nil
}
