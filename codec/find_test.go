package codec

import (
	"bytes"
	"strings"
	"testing"
)

type named string

func TestFindReturnsTheKeyInsideTheRecord(t *testing.T) {
	t.Parallel()
	type event struct {
		N    int64
		User named
		Tail string
	}
	records, keys := mustFor[event](t), mustKey(t)
	for _, user := range []named{"a", "someone", named(strings.Repeat("k", 127)), named(strings.Repeat("k", 128)), ""} {
		e := event{-5, user, "tail"}
		b, err := records.Append(nil, &e)
		if err != nil {
			t.Fatal(err)
		}
		want, err := keys.Append(nil, &user)
		if err != nil {
			t.Fatal(err)
		}
		if keys.Find(b, &user) != nil {
			t.Errorf("%.10q: found a string that is elsewhere", user)
		}
		var d event
		if err := records.Decode(b, &d); err != nil {
			t.Fatal(err)
		}
		got := keys.Find(b, &d.User)
		if got != nil && !bytes.Equal(got, want) || got == nil && len(user) > 0 && len(user) < 128 {
			t.Errorf("%.10q: got %x, want %x", user, got, want)
		}
		if part := d.User[min(1, len(d.User)):]; len(part) > 0 && part != d.User {
			if got := keys.Find(b, &part); got != nil {
				want, _ := keys.Append(nil, &part)
				if !bytes.Equal(got, want) {
					t.Errorf("part of %.10q: got %x, want %x", user, got, want)
				}
			}
		}
		if before := b[:1]; len(d.User) > 0 && keys.Find(before, &d.User) != nil {
			t.Errorf("%.10q: found beyond the end", user)
		}
		if len(d.Tail) > 0 && keys.Find(b[len(b)-2:], &d.User) != nil {
			t.Errorf("%.10q: found before the start", user)
		}
	}
	n, numbers := int64(3), mustFor[int64](t)
	if numbers.Find([]byte{6}, &n) != nil {
		t.Error("found a number")
	}
}

func mustKey(t *testing.T) *Codec[named] {
	c, err := ForKey[named]()
	if err != nil {
		t.Fatal(err)
	}
	return c
}
