package wire_test

import (
	"testing"

	"github.com/weirflow/weir/netstack/wire"
)

// A long record is put together with few allocations, each twice as large as the one
// before, and its memory is not kept.
func TestLongRecordsAreCopiedFewTimes(t *testing.T) {
	const size = 16 << 20
	head := make([]byte, wire.MaxElementHead)
	b := append(head[:wire.PutRecordHead(head, false, 0, 0, 0, size)], make([]byte, size)...)
	c := wire.Cutter{Reuse: true}
	got := testing.AllocsPerRun(3, func() {
		cut := 0
		for rest := b; len(rest) > 0; {
			n := min(len(rest), wire.MaxPayload)
			c.Feed(rest[:n], 0)
			rest = rest[n:]
			var e wire.Element
			for {
				ok, err := c.Next(&e)
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					break
				}
				cut += len(e.Payload)
			}
		}
		if cut != size {
			t.Fatalf("%d bytes of %d", cut, size)
		}
	})
	if got > 12 {
		t.Errorf("%v allocations for a record of %d bytes", got, size)
	}
	if begun, _, _, _ := c.Rest(); cap(begun) > 0 {
		t.Errorf("%d bytes kept", cap(begun))
	}
}
