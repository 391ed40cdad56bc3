package tidy

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
)

// empty names say nothing about what they name.
var emptyNames = []string{"util", "utils", "common", "helper", "helpers", "manager", "impl", "base", "misc"}

// Names checks that no package or file has an empty name and no exported type
// repeats its package's name in front of its own.
func Names(t *Tree) []string {
	var bad []string
	for _, f := range t.Go {
		file := strings.TrimSuffix(strings.TrimSuffix(path.Base(f.Path), ".go"), "_test")
		for _, name := range []string{file, f.AST.Name.Name} {
			if slices.Contains(emptyNames, name) {
				bad = append(bad, fmt.Sprintf("%s: %q says nothing", f.Path, name))
			}
		}
		if !f.Generated && !f.Test {
			bad = append(bad, stutters(f)...)
		}
	}
	return bad
}

func stutters(f *GoFile) []string {
	var bad []string
	pkg := f.AST.Name.Name
	for _, decl := range f.AST.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range gen.Specs {
			typ, ok := spec.(*ast.TypeSpec)
			if !ok || !typ.Name.IsExported() {
				continue
			}
			// barrier.Barriers is a plural, barrier.BarrierHandler says it twice.
			rest, same := cutFold(typ.Name.Name, pkg)
			if same && rest != "" && rest[0] >= 'A' && rest[0] <= 'Z' {
				bad = append(bad, fmt.Sprintf("%s: %s.%s says %q twice", f.at(typ), pkg, typ.Name.Name, pkg))
			}
		}
	}
	return bad
}

// cutFold is strings.CutPrefix without regard to case.
func cutFold(s, prefix string) (rest string, ok bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}

// The patterns are put together so that this file does not match them.
var (
	unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|X` + `XX)\b`)
	silenced   = regexp.MustCompile(`//\s*(no` + `lint|lint:` + `ignore)`)
	machine    = regexp.MustCompile("(^|[\\s\"'(=:`])/wo" + "rk/")
)

// Words checks all text files for what has no place in a repository: what is
// unfinished, linters that were silenced, paths of one machine.
func Words(t *Tree) []string {
	var bad []string
	for _, p := range t.paths() {
		n := 0
		for line := range strings.Lines(string(t.Texts[p])) {
			n++
			for _, re := range []*regexp.Regexp{unfinished, silenced, machine} {
				if found := re.FindString(line); found != "" {
					bad = append(bad, fmt.Sprintf("%s:%d: %q", p, n, strings.TrimSpace(found)))
				}
			}
		}
	}
	return bad
}
