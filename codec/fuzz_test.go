package codec

import (
	"bytes"
	"testing"
)

// FuzzDecode gives any bytes to a type with everything in it. What decodes must
// encode, and from then on stay the same.
func FuzzDecode(f *testing.F) {
	c := mustFor[Everything](f)
	for _, v := range []Everything{full(), {}} {
		b, err := c.Append(nil, &v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var v, w Everything
		if c.Decode(in, &v) != nil {
			return
		}
		b, err := c.Append(nil, &v)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Decode(b, &w); err != nil {
			t.Fatalf("own bytes: %v", err)
		}
		again, err := c.Append(nil, &w)
		if err != nil || !bytes.Equal(b, again) {
			t.Fatalf("%x became %x, %v", b, again, err)
		}
	})
}

// FuzzFixed does the same for the fixed-size form.
func FuzzFixed(f *testing.F) {
	c := mustFor[padded](f)
	f.Add(make([]byte, c.FixedSize()))
	f.Fuzz(func(t *testing.T, in []byte) {
		var v padded
		if c.GetFixed(in, &v) != nil {
			return
		}
		out := make([]byte, c.FixedSize())
		c.PutFixed(out, &v)
		if !bytes.Equal(in, out) {
			t.Fatalf("%x became %x", in, out)
		}
	})
}
