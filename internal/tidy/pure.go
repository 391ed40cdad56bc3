package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
)

// pure lists the packages that decide and do nothing else, and which of our own
// packages each may import. They have no goroutine, channel, lock, context, clock,
// logger or I/O (docs/architecture.md, the first thing that shapes everything).
var pure = map[string][]string{
	"":                         {},
	"jobgraph":                 {""},
	"netstack/credit":          {"internal/assert", "internal/planted"},
	"netstack/wire":            {"", "internal/assert", "internal/planted"},
	"taskmanager/barrier":      {"", "internal/assert", "internal/planted"},
	"taskmanager/lifecycle":    {"", "internal/assert"},
	"taskmanager/watermark":    {"", "internal/assert"},
	"jobmanager/execgraph":     {"", "internal/assert", "internal/planted", "jobgraph"},
	"jobmanager/scheduling":    {"", "internal/assert", "jobgraph", "jobmanager/execgraph"},
	"jobmanager/checkpointing": {"", "internal/assert", "internal/planted"},
	"jobmanager/failover":      {"", "internal/assert", "jobgraph", "jobmanager/execgraph"},
	"jobmanager/resource":      {"", "internal/assert"},
	"flow/window":              {""},
	"cli/explain":              {"", "jobgraph", "rpc"},
}

// pureFiles are files of other packages that are held to the same, by pattern. They
// may import any pure package and what is named here.
var pureFiles = map[string][]string{
	"jobmanager/jobmaster/core*.go": {
		"internal/assert", "internal/planted", "operator", "rpc", "snapshotmeta", "jobmanager/joboption", "jobmanager/opcoord",
	},
	"jobmanager/opcoord/event_gate*.go": {"internal/assert"},
}

// pureStd are the packages of the standard library that pure code may import.
var pureStd = []string{
	"bytes", "cmp", "container/heap", "container/list", "container/ring", "crypto/sha256", "encoding/base64",
	"encoding/binary", "encoding/hex", "errors", "fmt", "hash", "hash/crc32", "iter", "maps", "math", "math/bits",
	"math/rand", "math/rand/v2", "slices", "sort", "strconv", "strings", "time", "unicode", "unicode/utf8",
}

// clock is what pure code may not call in package time; types and constants it may use.
var clock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}

// Pure checks the files of pure packages, tests excepted.
func Pure(t *Tree) []string {
	var bad []string
	for _, f := range t.Go {
		if allowed, ok := pureImports(f); ok && !f.Test {
			bad = append(bad, impureImports(f, allowed)...)
			bad = append(bad, impureSyntax(f)...)
		}
	}
	return bad
}

// pureImports returns which of our packages a pure file may import, and whether it is one.
func pureImports(f *GoFile) ([]string, bool) {
	if allowed, ok := pure[f.Package]; ok {
		return allowed, true
	}
	for pattern, more := range pureFiles {
		if ok, err := path.Match(pattern, f.Path); err == nil && ok {
			for pkg := range pure {
				more = append(more[:len(more):len(more)], pkg)
			}
			return more, true
		}
	}
	return nil, false
}

func impureImports(f *GoFile, allowed []string) []string {
	var bad []string
	for _, imported := range f.imports() {
		to, ours := own(imported)
		if ours && !slices.Contains(allowed, to) && to != f.Package {
			from, _ := floorOf(f.Package)
			floor, _ := floorOf(to)
			bad = append(bad, fmt.Sprintf("%s: pure package %s (floor %d) imports %s (floor %d), which is not in its list in internal/tidy/pure.go",
				f.Path, display(f.Package), from, display(to), floor))
		}
		if !ours && !slices.Contains(pureStd, imported) {
			bad = append(bad, fmt.Sprintf("%s: pure package %s imports %s", f.Path, display(f.Package), imported))
		}
	}
	return bad
}

func impureSyntax(f *GoFile) []string {
	var bad []string
	imports := f.imports()
	report := func(n ast.Node, what string) {
		bad = append(bad, fmt.Sprintf("%s: pure package %s has %s", f.at(n), display(f.Package), what))
	}
	ast.Inspect(f.AST, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			report(n, "a goroutine")
		case *ast.ChanType:
			report(n, "a channel")
		case *ast.SelectStmt:
			report(n, "a select")
		case *ast.SendStmt:
			report(n, "a send")
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				report(n, "a receive")
			}
		case *ast.SelectorExpr:
			if pkg, name := selected(n, imports); pkg == "time" && slices.Contains(clock, name) {
				report(n, "a call of the clock, time."+name)
			}
			if pkg, name := selected(n, imports); pkg == "fmt" && (strings.HasPrefix(name, "Print") || strings.HasPrefix(name, "Scan")) {
				report(n, "I/O, fmt."+name)
			}
		}
		return true
	})
	return bad
}

// selected resolves pkg.Name to the import path and the name.
func selected(sel *ast.SelectorExpr, imports map[string]string) (pkg, name string) {
	id, ok := sel.X.(*ast.Ident)
	if !ok {
		return "", ""
	}
	return imports[id.Name], sel.Sel.Name
}
