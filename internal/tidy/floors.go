package tidy

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// place puts packages on a floor. The pattern is as of path.Match, with "/..." at its
// end for "this and all below"; the first place that matches a package is its own.
type place struct {
	pattern string
	floor   int
}

// floors is the plan: docs/architecture.md shows it, this enforces it. A package
// imports lower floors only, and packages on its own floor under the same top-level
// folder.
var floors = []place{
	{"internal/tidy", 9},
	{"internal/deploytest", 9},
	{"cmd/...", 9},
	{"bench/...", 9},
	{"examples/*/cmd", 9},
	{"examples/*/cmd/...", 9},
	{"daemon", 8},
	{"jobs", 8},
	{"cli", 7},
	{"cli/...", 7},
	{"examples/...", 7},
	{"minicluster", 6},
	{"sim/...", 6},
	{"connector/...", 5},
	{"pipeline", 5},
	{"client", 5},
	{"rest", 5},
	{"web", 5},
	{"jobmanager/ha/etcd", 5},
	{"jobmanager/ha/etcdserver", 5},
	{"netstack/link/grpclink", 5},
	{"taskmanager/...", 4},
	{"jobmanager/...", 4},
	{"flow/...", 4},
	{"operator/...", 3},
	{"rpc/...", 3},
	{"snapshotmeta", 3},
	{"netstack/...", 2},
	{"statebackend/...", 2},
	{"proto/*pb", 2},
	{"jobgraph", 1},
	{"codec/...", 1},
	{"blobstore/...", 1},
	{"localfs/...", 1},
	{"metrics", 1},
	{"internal/group", 0},
	{"internal/assert", 0},
	{"internal/planted", 0},
	{"internal/stoppoint", 0},
	{"", 0},
}

// ban forbids what the floors would allow.
type ban struct {
	from, to string // packages and all below them
	why      string
}

var bans = []ban{
	{"netstack", "jobgraph", "the network stack does not know jobs"},
	{"statebackend", "jobgraph", "state does not know jobs"},
	{"netstack", "blobstore", "the network stack does not know storage"},
}

// generatedUsers are the only packages that may import the generated ones.
var generatedUsers = map[string][]string{
	"proto/controlpb":  {"rpc/grpc"},
	"proto/clientpb":   {"rpc/grpc"},
	"proto/snapshotpb": {"snapshotmeta"},
	"proto/datapb":     nil,
}

// testImports are imports that tests of a package may have beyond the plan.
var testImports = map[string][]string{
	"netstack/wire": {"proto/datapb"},
}

// floorOf returns a package's floor.
func floorOf(pkg string) (int, bool) {
	for _, p := range floors {
		dir, tree := strings.CutSuffix(p.pattern, "/...")
		if tree && matchPrefix(dir, pkg) {
			return p.floor, true
		}
		if ok, err := path.Match(p.pattern, pkg); err == nil && ok {
			return p.floor, true
		}
	}
	return 0, false
}

// matchPrefix says whether pkg, or a directory above it, matches the pattern.
func matchPrefix(pattern, pkg string) bool {
	parts := strings.Split(pkg, "/")
	n := strings.Count(pattern, "/") + 1
	if len(parts) < n {
		return false
	}
	ok, err := path.Match(pattern, strings.Join(parts[:n], "/"))
	return err == nil && ok
}

// Layering checks every import between our packages against the plan.
func Layering(t *Tree) []string {
	var bad []string
	for _, pkg := range t.packages() {
		if _, ok := floorOf(pkg); !ok {
			bad = append(bad, fmt.Sprintf("package %s is on no floor: give it a place in internal/tidy/floors.go", pkg))
		}
	}
	for _, f := range t.Go {
		for _, imported := range f.imports() {
			if to, ok := own(imported); ok {
				if why := forbidden(f, to); why != "" {
					bad = append(bad, fmt.Sprintf("%s: package %s imports %s: %s", f.Path, display(f.Package), display(to), why))
				}
			}
		}
	}
	return bad
}

// forbidden says why a file may not import one of our packages, or nothing.
func forbidden(f *GoFile, to string) string {
	if f.Package == to || f.Test && slices.Contains(testImports[f.Package], to) {
		return ""
	}
	if users, generated := generatedUsers[to]; generated && !f.Generated && !slices.Contains(users, f.Package) {
		return "generated code is for " + strings.Join(append(users, "the tests named in internal/tidy"), " and ")
	}
	if within(to, "sim") && !f.Test && !within(f.Package, "sim") {
		return "the simulator is for tests"
	}
	for _, b := range bans {
		if within(f.Package, b.from) && within(to, b.to) {
			return b.why
		}
	}
	high, okFrom := floorOf(f.Package)
	low, okTo := floorOf(to)
	if !okFrom || !okTo || low < high || low == high && folder(f.Package) == folder(to) {
		return ""
	}
	return fmt.Sprintf("it is on floor %d and %s on floor %d; only lower floors, and the own floor under the same folder, may be imported",
		high, display(to), low)
}

// folder is the top-level folder of a package.
func folder(pkg string) string {
	top, _, _ := strings.Cut(pkg, "/")
	return top
}
