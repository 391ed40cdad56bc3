package daemon

import (
	"net"
	"slices"
	"testing"
)

// TestWhoListensToOthersOpensOnlyWhatIsNamed: field report B105.
func TestWhoListensToOthersOpensOnlyWhatIsNamed(t *testing.T) {
	t.Parallel()
	here, everywhere := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, &net.TCPAddr{IP: net.IPv4zero}
	for _, c := range []struct {
		named   []string
		listens net.Addr
		want    []string
	}{
		{nil, here, nil},
		{nil, &net.UnixAddr{Name: "/run/weir"}, nil},
		{nil, everywhere, []string{"/ck", "/sp"}},
		{[]string{"/other/"}, everywhere, []string{"/other", "/ck", "/sp"}},
		{[]string{"/other"}, here, []string{"/other", "/ck", "/sp"}},
	} {
		if got := snapshotDirs(c.named, c.listens, "/ck", "", "/sp"); !slices.Equal(got, c.want) {
			t.Errorf("%q at %s: %q, want %q", c.named, c.listens, got, c.want)
		}
	}
}
