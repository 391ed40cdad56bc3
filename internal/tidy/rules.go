package tidy

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// Rule is one thing that the test checks.
type Rule struct {
	Name  string
	Check func(*Tree) []string // complaints, in any order
}

// Rules are all of them, but for the ratchets (ratchet.go).
var Rules = []Rule{
	{"layering", Layering},
	{"external_modules", External},
	{"pure_packages", Pure},
	{"doc.go", Docs},
	{"goroutines_only_in_group", Goroutines},
	{"no_skipped_tests", Skips},
	{"no_sleep", Sleeps},
	{"names", Names},
	{"contexts_are_no_fields", ContextFields},
	{"typed_atomics", Atomics},
	{"environment_and_logging", Surroundings},
	{"words", Words},
	{"citations", Citations},
	{"named_tests", NamedTests},
}

// Docs checks that every package has a doc.go that says what it is.
func Docs(t *Tree) []string {
	docs := make(map[string]*GoFile)
	names := make(map[string]string)
	for _, f := range t.Go {
		if strings.HasSuffix("/"+f.Path, "/doc.go") {
			docs[f.Package] = f
		}
		if name := strings.TrimSuffix(f.AST.Name.Name, "_test"); names[f.Package] == "" {
			names[f.Package] = name
		}
	}
	var bad []string
	for _, pkg := range t.packages() {
		f := docs[pkg]
		if f == nil {
			bad = append(bad, fmt.Sprintf("package %s has no doc.go", display(pkg)))
			continue
		}
		start, least := "Package "+names[pkg]+" ", 3
		if names[pkg] == "main" {
			start, least = "Command ", 1
		}
		text := f.AST.Doc.Text()
		if !strings.HasPrefix(text, start) || strings.Count(text, "\n") < least {
			bad = append(bad, fmt.Sprintf("%s: want a comment of at least %d lines that begins with %q", f.Path, least, start))
		}
	}
	return bad
}

// starter may start goroutines.
const starter = "internal/group"

// Goroutines checks that nobody but internal/group starts one. Tests are excepted, and
// the bare loops of bench, which do the same work without us.
func Goroutines(t *Tree) []string {
	var bad []string
	for _, f := range t.Go {
		if f.Test || f.Generated || f.Package == starter || within(f.Package, "bench") {
			continue
		}
		imports := f.imports()
		ast.Inspect(f.AST, func(n ast.Node) bool {
			what := ""
			switch n := n.(type) {
			case *ast.GoStmt:
				what = "a go statement"
			case *ast.SelectorExpr:
				switch pkg, name := selected(n, imports); {
				case (pkg == "time" || pkg == "context") && name == "AfterFunc":
					what = pkg + ".AfterFunc"
				case pkg == "sync" && name == "WaitGroup":
					what = "sync.WaitGroup"
				}
			}
			if what != "" {
				bad = append(bad, fmt.Sprintf("%s: package %s has %s; goroutines and timers' functions belong to %s", f.at(n), display(f.Package), what, starter))
			}
			return true
		})
	}
	return bad
}

// Skips checks that no test can be skipped.
func Skips(t *Tree) []string {
	var bad []string
	receivers := []string{"t", "b", "f", "tb", "rt"}
	for _, f := range t.Go {
		ast.Inspect(f.AST, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || !slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, sel.Sel.Name) {
				return true
			}
			if id, ok := sel.X.(*ast.Ident); ok && slices.Contains(receivers, id.Name) {
				bad = append(bad, fmt.Sprintf("%s: %s.%s; a test that cannot run here belongs behind a build tag or is none", f.at(n), id.Name, sel.Sel.Name))
			}
			return true
		})
	}
	return bad
}

// Sleeps checks that nobody sleeps against the wall clock: in tests only inside a
// synctest bubble, elsewhere only in examples, whose user code may be slow on purpose.
func Sleeps(t *Tree) []string {
	var bad []string
	for _, f := range t.Go {
		if within(f.Package, "examples") && !f.Test {
			continue
		}
		imports := f.imports()
		bubbles := imports["synctest"] == "testing/synctest"
		for _, decl := range f.AST.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			helper := ok && f.Test && bubbles && !strings.HasPrefix(fn.Name.Name, "Test")
			if helper {
				continue // called from a bubble, as far as can be seen
			}
			inspectOutsideBubbles(decl, imports, func(sel *ast.SelectorExpr) {
				bad = append(bad, fmt.Sprintf("%s: time.Sleep outside a synctest bubble; wait for an event, or for a timer and the stop", f.at(sel)))
			})
		}
	}
	return bad
}

// inspectOutsideBubbles calls found for each time.Sleep that is not inside the
// arguments of synctest.Test.
func inspectOutsideBubbles(decl ast.Decl, imports map[string]string, found func(*ast.SelectorExpr)) {
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok {
				if pkg, name := selected(sel, imports); pkg == "testing/synctest" && name == "Test" {
					return false
				}
			}
		case *ast.SelectorExpr:
			if pkg, name := selected(n, imports); pkg == "time" && name == "Sleep" {
				found(n)
			}
		}
		return true
	})
}

// ContextFields checks that no struct holds a context, internal/group's excepted.
func ContextFields(t *Tree) []string {
	var bad []string
	for _, f := range t.Go {
		if f.Test || f.Generated || f.Package == starter {
			continue
		}
		imports := f.imports()
		ast.Inspect(f.AST, func(n ast.Node) bool {
			s, ok := n.(*ast.StructType)
			if !ok {
				return true
			}
			for _, field := range s.Fields.List {
				sel, ok := field.Type.(*ast.SelectorExpr)
				if !ok {
					continue
				}
				if pkg, name := selected(sel, imports); pkg == "context" && name == "Context" {
					bad = append(bad, fmt.Sprintf("%s: a context as a field; it is the first parameter of whatever may block", f.at(field)))
				}
			}
			return true
		})
	}
	return bad
}

// Atomics checks that atomics are typed.
func Atomics(t *Tree) []string {
	var bad []string
	for _, f := range t.Go {
		imports := f.imports()
		ast.Inspect(f.AST, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok && !f.Generated {
				if pkg, name := selected(sel, imports); pkg == "sync/atomic" {
					bad = append(bad, fmt.Sprintf("%s: atomic.%s; use the types of sync/atomic", f.at(n), name))
				}
			}
			return true
		})
	}
	return bad
}

// Surroundings checks that the environment is read and the standard loggers are used
// only where a process is put together, and that nothing process-random is hashed with.
func Surroundings(t *Tree) []string {
	var bad []string
	for _, f := range t.Go {
		floor, _ := floorOf(f.Package)
		if f.Test || floor >= 7 {
			continue
		}
		imports := f.imports()
		for _, p := range imports {
			if p == "log" || p == "log/slog" || p == "hash/maphash" || p == "expvar" {
				bad = append(bad, fmt.Sprintf("%s: package %s (floor %d) imports %s", f.Path, display(f.Package), floor, p))
			}
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if pkg, name := selected(sel, imports); pkg == "os" && slices.Contains([]string{"Getenv", "LookupEnv", "Environ", "Exit"}, name) {
					bad = append(bad, fmt.Sprintf("%s: package %s (floor %d) calls os.%s; that is for daemon and above", f.at(n), display(f.Package), floor, name))
				}
			}
			return true
		})
	}
	return bad
}
