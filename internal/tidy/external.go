package tidy

import (
	"fmt"
	"slices"
	"strings"
)

// Modules outside the standard library, by the prefix of their import paths.
const (
	cobra      = "github.com/spf13/cobra"
	datadriven = "github.com/cockroachdb/datadriven"
	etcdAPI    = "go.etcd.io/etcd/api/v3"
	etcdClient = "go.etcd.io/etcd/client/v3"
	etcdServer = "go.etcd.io/etcd/server/v3"
	genproto   = "google.golang.org/genproto/googleapis/rpc"
	gonumPlot  = "gonum.org/v1/plot"
	grpc       = "google.golang.org/grpc"
	k8s        = "k8s.io/api"
	prometheus = "github.com/prometheus/client_golang"
	protobuf   = "google.golang.org/protobuf"
	rapid      = "pgregory.net/rapid"
	xsys       = "golang.org/x/sys"
	xterm      = "golang.org/x/term"
	xxh3       = "github.com/zeebo/xxh3"
	yaml       = "sigs.k8s.io/yaml"
	zap        = "go.uber.org/zap"
)

// external lists the modules that a package may import. A name with "/..." at its end
// stands for the package and all below it; the longest name that fits counts, and a
// package without one may import none.
var external = map[string][]string{
	"blobstore/fs":             {xsys},
	"localfs/...":              {xsys},
	"codec/...":                {xxh3, protobuf},
	"metrics":                  {prometheus},
	"proto/...":                {grpc, protobuf},
	"operator":                 {zap},
	"rpc/grpc":                 {grpc, protobuf, genproto, zap},
	"snapshotmeta":             {protobuf},
	"netstack":                 {zap},
	"netstack/link/grpclink":   {grpc, zap},
	"taskmanager/...":          {zap},
	"jobmanager/...":           {zap},
	"jobmanager/ha/etcd":       {etcdClient, etcdAPI, grpc, zap},
	"jobmanager/ha/etcdserver": {etcdServer, etcdClient, zap},
	"flow":                     {xxh3, zap},
	"connector/...":            {zap},
	"client":                   {grpc, zap},
	"minicluster":              {zap},
	"sim/...":                  {zap},
	"cli/...":                  {cobra, gonumPlot, xterm, yaml, zap},
	"daemon":                   {cobra, grpc, xsys, xterm, zap},
	"examples/...":             {zap},
	"bench/...":                {grpc, xsys, xxh3, zap},
}

// forTests are what any test may import, and any contract suite: a package whose name
// ends in "test".
var forTests = []string{datadriven, rapid}

// moreForTests are what a package's tests may import beyond its own modules.
var moreForTests = map[string][]string{
	"":                    {xxh3},
	"metrics":             {prometheus},
	"netstack/...":        {zap},
	"netstack/wire":       {protobuf},
	"rpc/...":             {grpc, zap},
	"statebackend/...":    {xxh3, zap},
	"cmd/...":             {grpc, zap},
	"internal/deploytest": {k8s, yaml},
}

// External checks imports of other modules against the lists above, and that each
// module of go.mod has its reason in docs/deps.md.
func External(t *Tree) []string {
	var bad []string
	for _, f := range t.Go {
		allowed := longest(external, f.Package)
		if f.Test || strings.HasSuffix(f.Package, "test") {
			allowed = slices.Concat(allowed, forTests, longest(moreForTests, f.Package))
		}
		for _, imported := range f.imports() {
			if !outside(imported) || slices.ContainsFunc(allowed, func(m string) bool { return within(imported, m) }) {
				continue
			}
			floor, _ := floorOf(f.Package)
			bad = append(bad, fmt.Sprintf("%s: package %s (floor %d) imports %s, which is not in its list in internal/tidy/external.go",
				f.Path, display(f.Package), floor, imported))
		}
	}
	return append(bad, reasons(t)...)
}

// outside says whether an import is neither ours nor the standard library's.
func outside(imported string) bool {
	if _, ours := own(imported); ours {
		return false
	}
	first, _, _ := strings.Cut(imported, "/")
	return strings.Contains(first, ".")
}

// longest returns the entry of the longest name that fits pkg.
func longest(lists map[string][]string, pkg string) []string {
	if list, ok := lists[pkg]; ok {
		return list
	}
	for dir := pkg; dir != ""; {
		if list, ok := lists[dir+"/..."]; ok {
			return list
		}
		dir = dir[:max(0, strings.LastIndexByte(dir, '/'))]
	}
	return nil
}

// reasons checks that docs/deps.md names every direct dependency of go.mod.
func reasons(t *Tree) []string {
	var bad []string
	deps := string(t.Texts["docs/deps.md"])
	for line := range strings.Lines(string(t.Texts["go.mod"])) {
		fields := strings.Fields(line)
		if len(fields) != 2 || !outside(fields[0]) || fields[1][0] != 'v' {
			continue // not a direct requirement
		}
		if !strings.Contains(deps, "`"+fields[0]+"`") {
			bad = append(bad, fmt.Sprintf("docs/deps.md: no line about `%s`, which go.mod requires", fields[0]))
		}
	}
	return bad
}
