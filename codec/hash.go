package codec

import "github.com/zeebo/xxh3"

// HashVersion numbers the function that [Hash] is. It is part of the formats of
// elements and state.
const HashVersion = 1

// Hash is the hash of an encoded key: XXH3, 64 bits, seed 0, over the bytes
// (DECISIONS 20). Its high 32 bits choose the key group, its low 32 bits are the
// tag in a table.
func Hash(encodedKey []byte) uint64 { return xxh3.Hash(encodedKey) }
