package main

import (
	"testing"
	"testing/fstest"
)

func id(t *testing.T, changes map[string]string) string {
	t.Helper()
	files := fstest.MapFS{
		"go.mod":     {Data: []byte("module m\n")},
		"go.sum":     {Data: []byte("sums\n")},
		"a.go":       {Data: []byte("package m\n")},
		"sub/b.go":   {Data: []byte("package sub\n")},
		"a_test.go":  {Data: []byte("package m\n")},
		"tools/x.go": {Data: []byte("package x\n")}, "tools/go.mod": {Data: []byte("module x\n")},
	}
	for p, content := range changes {
		files[p] = &fstest.MapFile{Data: []byte(content)}
	}
	got, err := codeID(files)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestCodeIDChangesWithCodeAlone(t *testing.T) {
	before := id(t, nil)
	if len(before) != 32 {
		t.Errorf("id %q has %d digits", before, len(before))
	}
	for _, p := range []string{"go.mod", "go.sum", "a.go", "sub/b.go", "new.go", "web/index.html"} {
		if id(t, map[string]string{p: "package changed\n"}) == before {
			t.Errorf("the id does not depend on %s", p)
		}
	}
	for _, p := range []string{"a_test.go", "tools/x.go", "README.md", "testdata/x.go", "bin/x.go", ".git/x.go"} {
		if id(t, map[string]string{p: "package changed\n"}) != before {
			t.Errorf("the id depends on %s", p)
		}
	}
}

func TestCodeIDWantsTheRootOfAModule(t *testing.T) {
	if _, err := codeID(fstest.MapFS{"a.go": {Data: []byte("package m\n")}}); err == nil {
		t.Error("want an error")
	}
}
