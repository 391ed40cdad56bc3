package codec

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// Strings of these lengths, which most keys have, are hashed without being encoded.
const (
	minHashText = 16
	maxHashText = 31
)

// hashText is [Hash] of the encoding of s: one byte that is its length, then s. It is
// XXH3 of 17 to 32 bytes, whose first word is put together in a register: hashing what
// has just been written would wait for the stores. Not ok are other lengths.
func hashText(s string) (hash uint64, ok bool) {
	const (
		prime   = 0x9E3779B185EBCA87
		secret0 = 0xbe4ba423396cfeb8
		secret1 = 0x1cad21f72c81017c
		secret2 = 0xdb979083e96dd4de
		secret3 = 0x1f67b3b7a4a44072
	)
	n := len(s)
	if n < minHashText || n > maxHashText {
		return 0, false
	}
	p := unsafe.Pointer(unsafe.StringData(s))
	first := word(p, 0)<<8 | uint64(n)
	h := uint64(n+1) * prime
	h += foldedProduct(first^secret0, word(p, 7)^secret1)
	h += foldedProduct(word(p, n-16)^secret2, word(p, n-8)^secret3)
	h ^= h >> 37
	h *= 0x165667919E3779F9
	return h ^ h>>32, true
}

// word reads eight bytes. Without checks of bounds the hash is a function without a frame.
func word(p unsafe.Pointer, at int) uint64 {
	return binary.LittleEndian.Uint64((*[8]byte)(unsafe.Add(p, at))[:])
}

func foldedProduct(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

// HashText is [Hash] of the encoding of *v, without encoding it, if *v is a string of a
// usual length.
func (c *Codec[T]) HashText(v *T) (hash uint64, ok bool) {
	if c.text {
		return hashText(*(*string)(unsafe.Pointer(v)))
	}
	return 0, false
}
