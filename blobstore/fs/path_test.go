package fs_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirflow/weir/blobstore/fs"
)

// TestPathsFromOutside: field report B105.
func TestPathsFromOutside(t *testing.T) {
	base := t.TempDir()
	root, outside := filepath.Join(base, "root"), filepath.Join(base, "outside")
	for _, dir := range []string{filepath.Join(root, "in"), outside} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link := func(to, from string) {
		t.Helper()
		if err := os.Symlink(to, from); err != nil {
			t.Fatal(err)
		}
	}
	link(outside, filepath.Join(root, "out"))
	link("../outside/later", filepath.Join(root, "dangling"))
	link(filepath.Join(root, "in"), filepath.Join(root, "stays"))
	link(root, filepath.Join(base, "alias"))
	for _, c := range []struct{ path, root, why string }{
		{root, root, ""},
		{root + "/in/new/deep", root, ""},
		{root + "//in/./", root, ""},
		{root + "/stays/x", root, ""},
		{base + "/alias/in", base + "/alias", ""},
		{"/anywhere", "", ""},
		{"/anywhere", "/", ""},
		{"", root, "empty"},
		{"in", root, "not absolute"},
		{"in", "", "not absolute"},
		{root + "/../outside", root, "goes up"},
		{root + "/in/..", "", "goes up"},
		{root + "/a\x00b", root, "NUL"},
		{root + `\..\x`, root, "backslash"},
		{root + "side", root, "not in"},
		{outside, root, "not in"},
		{root + "/out", root, "link leads out"},
		{root + "/out/later/x", root, "link leads out"},
		{root + "/dangling/x", root, "link to nothing"},
		{"/" + strings.Repeat("x", 5000), "", "bytes"},
	} {
		var roots []string
		if c.root != "" {
			roots = []string{c.root}
		}
		got, err := fs.CheckPath(c.path, roots...)
		if c.why == "" && (err != nil || got != filepath.Clean(c.path)) {
			t.Errorf("%q in %q: %q, %v", c.path, c.root, got, err)
		}
		if c.why != "" && (!errors.Is(err, fs.ErrBadPath) || !strings.Contains(err.Error(), c.why)) {
			t.Errorf("%q in %q: %q, %v; want %q", c.path, c.root, got, err, c.why)
		}
	}
}
