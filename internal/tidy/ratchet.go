package tidy

import (
	"bytes"
	"fmt"
	"go/ast"
	"slices"
	"strconv"
	"strings"
)

// Limits of size, in lines.
const (
	maxFunction = 70
	maxTest     = 120  // a function of a test, which may hold a table or a history
	maxFile     = 800  // tests have no limit
	maxRoot     = 1500 // the root package in all: beyond that something in it is no noun
)

// RatchetFile holds the known exceptions, by path from the root.
const RatchetFile = "internal/tidy/testdata/ratchet.txt"

// Oversized returns everything that is too long, with its length, by a name such as
// "file netstack/gate/gate.go" or "func netstack/gate/gate.go Gate.Poll". Generated code
// has no limit.
func Oversized(t *Tree) map[string]int {
	sizes := make(map[string]int)
	root := 0
	for _, f := range t.Go {
		if f.Generated {
			continue
		}
		lines := bytes.Count(t.Texts[f.Path], []byte("\n"))
		if !f.Test && lines > maxFile {
			sizes["file "+f.Path] = lines
		}
		if !f.Test && f.Package == "" {
			root += lines
		}
		for _, decl := range f.AST.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			limit := maxFunction
			if f.Test {
				limit = maxTest
			}
			if n := f.line(fn.End()) - f.line(fn.Pos()) + 1; n > limit {
				sizes["func "+f.Path+" "+functionName(fn)] = n
			}
		}
	}
	if root > maxRoot {
		sizes["package weir"] = root
	}
	return sizes
}

func functionName(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	typ := fn.Recv.List[0].Type
	for {
		switch t := typ.(type) {
		case *ast.StarExpr:
			typ = t.X
		case *ast.IndexExpr:
			typ = t.X
		case *ast.IndexListExpr:
			typ = t.X
		case *ast.Ident:
			return t.Name + "." + fn.Name.Name
		default:
			return fn.Name.Name
		}
	}
}

// Ratchet compares what is too long with the known exceptions.
func Ratchet(t *Tree) []string {
	known, bad := parseRatchet(string(t.Texts[RatchetFile]))
	sizes := Oversized(t)
	for name, n := range sizes {
		switch limit, ok := known[name]; {
		case !ok:
			bad = append(bad, fmt.Sprintf("%s has %d lines (functions at most %d, of tests %d, files %d): split it", name, n, maxFunction, maxTest, maxFile))
		case n > limit:
			bad = append(bad, fmt.Sprintf("%s grew from %d to %d lines", name, limit, n))
		case n < limit:
			bad = append(bad, fmt.Sprintf("%s shrank from %d to %d lines: lower its line in %s", name, limit, n, RatchetFile))
		}
	}
	for name := range known {
		if _, ok := sizes[name]; !ok {
			bad = append(bad, fmt.Sprintf("%s is within its limit: remove its line from %s", name, RatchetFile))
		}
	}
	slices.Sort(bad)
	return bad
}

// parseRatchet reads lines of a name and a number; "#" begins a comment.
func parseRatchet(text string) (known map[string]int, bad []string) {
	known = make(map[string]int)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		i := strings.LastIndexByte(line, ' ')
		n, err := strconv.Atoi(line[i+1:])
		if i < 0 || err != nil {
			bad = append(bad, fmt.Sprintf("%s: want a name and a number: %q", RatchetFile, line))
			continue
		}
		known[line[:i]] = n
	}
	return known, bad
}
