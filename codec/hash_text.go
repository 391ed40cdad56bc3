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
// has just been written would wait for the stores.
func hashText(s string) uint64 {
	const (
		prime   = 0x9E3779B185EBCA87
		secret0 = 0xbe4ba423396cfeb8
		secret1 = 0x1cad21f72c81017c
		secret2 = 0xdb979083e96dd4de
		secret3 = 0x1f67b3b7a4a44072
	)
	n := len(s)
	b := unsafe.Slice(unsafe.StringData(s), n)
	first := binary.LittleEndian.Uint64(b)<<8 | uint64(n)
	h := uint64(n+1) * prime
	h += foldedProduct(first^secret0, binary.LittleEndian.Uint64(b[7:])^secret1)
	h += foldedProduct(binary.LittleEndian.Uint64(b[n-16:])^secret2, binary.LittleEndian.Uint64(b[n-8:])^secret3)
	h ^= h >> 37
	h *= 0x165667919E3779F9
	return h ^ h>>32
}

func foldedProduct(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

// HashOf is [Hash] of the encoding of *v, which stays where it is. It encodes into
// scratch if it must, and returns that for the next call.
func (c *Codec[T]) HashOf(scratch []byte, v *T) (hash uint64, encoded []byte, err error) {
	if c.text {
		if s := *(*string)(unsafe.Pointer(v)); len(s) >= minHashText && len(s) <= maxHashText {
			return hashText(s), scratch[:0], nil
		}
	}
	if scratch, err = c.AppendLocal(scratch[:0], v); err != nil {
		return 0, scratch, err
	}
	return Hash(scratch), scratch, nil
}
