package codec

import (
	"math/rand/v2"
	"testing"
)

func TestHashTextIsTheHashOfTheEncoding(t *testing.T) {
	t.Parallel()
	c := mustKey(t)
	r := rand.New(rand.NewPCG(1, 2))
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
			got, ok := c.HashText(&k)
			if usual := n >= minHashText && n <= maxHashText; ok != usual || ok && got != Hash(encoded) {
				t.Fatalf("%d bytes: %x, %v; want %x", n, got, ok, Hash(encoded))
			}
		}
	}
}

func TestHashTextIsOfStringsAlone(t *testing.T) {
	t.Parallel()
	type pair struct{ A, B string }
	if _, ok := mustFor[pair](t).HashText(&pair{"sixteen letters.", "sixteen letters."}); ok {
		t.Error("hashed a struct")
	}
}
