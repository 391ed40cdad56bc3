// Command codeid prints the code id of a module: a hash of the source of all its
// packages and of go.mod and go.sum, and so of its dependencies' sums too. It is the
// same on every machine and needs no version control.
//
//	cd tools && go run ./codeid ..
//
// Tests and testdata do not count, nor do modules inside the module, nor directories
// that begin with a dot or an underscore, nor build output.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: codeid ROOT")
		os.Exit(2)
	}
	id, err := codeID(os.DirFS(os.Args[1]))
	if err != nil {
		fmt.Fprintln(os.Stderr, "codeid:", err)
		os.Exit(1)
	}
	fmt.Println(id)
}

// codeID hashes the names and hashes of the files that make the code. It is 32
// hexadecimal digits.
func codeID(root fs.FS) (string, error) {
	files, err := sources(root)
	if err != nil {
		return "", err
	}
	all := sha256.New()
	fmt.Fprintln(all, "weir code id 1")
	for _, p := range files {
		content, err := fs.ReadFile(root, p)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(all, "%x %q\n", sha256.Sum256(content), p)
	}
	return hex.EncodeToString(all.Sum(nil)[:16]), nil
}

// sources lists the files that count, in order.
func sources(root fs.FS) ([]string, error) {
	var files []string
	err := fs.WalkDir(root, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if p != "." && (skip(d.Name()) || isModule(root, p)) {
				return fs.SkipDir
			}
			return nil
		}
		if counts(p) {
			files = append(files, p)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !slices.Contains(files, "go.mod") {
		return nil, fmt.Errorf("no go.mod here: not the root of a module")
	}
	slices.Sort(files)
	return files, nil
}

func skip(dir string) bool {
	return dir == "testdata" || dir == "bin" || dir == "build" || dir[0] == '.' || dir[0] == '_'
}

func isModule(root fs.FS, dir string) bool {
	_, err := fs.Stat(root, path.Join(dir, "go.mod"))
	return err == nil
}

func counts(p string) bool {
	if p == "go.mod" || p == "go.sum" {
		return true
	}
	return strings.HasSuffix(p, ".go") && !strings.HasSuffix(p, "_test.go") ||
		strings.HasPrefix(p, "web/") // embedded
}
