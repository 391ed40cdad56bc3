package codec

import (
	"math/rand/v2"
	"testing"
)

func TestHashOfIsTheHashOfTheEncoding(t *testing.T) {
	t.Parallel()
	c := mustKey(t)
	r := rand.New(rand.NewPCG(1, 2))
	var scratch []byte
	for n := range 200 {
		for range 20 {
			text := make([]byte, n)
			for i := range text {
				text[i] = byte(r.Uint32())
			}
			k := named(text)
			encoded, err := c.Append(nil, &k)
			if err != nil {
				t.Fatal(err)
			}
			var got uint64
			if got, scratch, err = c.HashOf(scratch, &k); err != nil || got != Hash(encoded) {
				t.Fatalf("%d bytes: %x, %v; want %x", n, got, err, Hash(encoded))
			}
		}
	}
}
