package tidy

import (
	"fmt"
	"go/ast"
	"regexp"
	"slices"
	"strings"
)

// namesPackageOrTest finds a package in backticks, or a test.
var namesPackageOrTest = regexp.MustCompile("`([a-z][a-z0-9/]*)`|\\b((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9]*)\\b")

// NamedTests checks that the tests that docs name are there: in one of the packages that
// the paragraph has named before, if there is one.
func NamedTests(t *Tree) []string {
	in := t.tests()
	var bad []string
	for _, p := range t.paths() {
		if !strings.HasPrefix(p, "docs/") || !strings.HasSuffix(p, ".md") {
			continue
		}
		for _, paragraph := range strings.Split(string(t.Texts[p]), "\n\n") {
			var packages []string
			for _, m := range namesPackageOrTest.FindAllStringSubmatch(paragraph, -1) {
				if pkg, test := m[1], m[2]; test == "" {
					if slices.Contains(t.packages(), pkg) {
						packages = append(packages, pkg)
					}
				} else if !isIn(in[test], packages) {
					bad = append(bad, fmt.Sprintf("%s: there is no %s in %s", p, test, strings.Join(packages, ", ")))
				}
			}
		}
	}
	return bad
}

func isIn(found, packages []string) bool {
	return len(found) > 0 && (len(packages) == 0 || slices.ContainsFunc(found, func(p string) bool { return slices.Contains(packages, p) }))
}

// tests are the packages of each test, by name.
func (t *Tree) tests() map[string][]string {
	in := make(map[string][]string)
	for _, f := range t.Go {
		if !f.Test {
			continue
		}
		for _, d := range f.AST.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				in[fn.Name.Name] = append(in[fn.Name.Name], f.Package)
			}
		}
	}
	return in
}
