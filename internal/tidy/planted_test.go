package tidy_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/weirflow/weir/internal/tidy"
)

// plant makes a tree of files, given as pairs of path and content.
func plant(t testing.TB, files map[string]string) *tidy.Tree {
	t.Helper()
	fsys := fstest.MapFS{}
	for p, content := range files {
		fsys[p] = &fstest.MapFile{Data: []byte(content)}
	}
	tree, err := tidy.Load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

const ours = `"github.com/weirflow/weir/`

func imports(pkg string, paths ...string) string {
	return "package " + pkg + "\n\nimport (\n_ " + strings.Join(paths, "\n_ ") + "\n)\n"
}

// A rule that finds nothing in its planted violation is no rule; one that finds
// something in the clean case is a nuisance.
var planted = []struct {
	name  string
	check func(*tidy.Tree) []string
	path  string
	src   string
	want  string // part of the one complaint, or empty for none
}{
	{"an import of a higher floor", tidy.Layering, "netstack/gate/g.go", imports("gate", ours+`taskmanager/barrier"`),
		"package netstack/gate imports taskmanager/barrier: it is on floor 2 and taskmanager/barrier on floor 4"},
	{"an import of a neighbour", tidy.Layering, "taskmanager/task/t.go", imports("task", ours+`flow"`), "floor 4"},
	{"the root importing anything", tidy.Layering, "x.go", imports("weir", ours+`jobgraph"`), "package weir imports jobgraph"},
	{"a test is held to the floors too", tidy.Layering, "operator/x_test.go", imports("operator", ours+`flow"`), "floor 3"},
	{"an adapter below its floor", tidy.Layering, "jobmanager/x.go", imports("jobmanager", ours+`jobmanager/ha/etcd"`), "floor 5"},
	{"lower floors and the own folder", tidy.Layering, "taskmanager/task/t.go", imports("task", ours+`taskmanager/barrier"`, ours+`netstack"`, `"fmt"`), ""},
	{"a main of an example", tidy.Layering, "examples/wordcount/cmd/main.go", imports("main", ours+`daemon"`, ours+`examples/wordcount"`), ""},
	{"an example that is a main", tidy.Layering, "examples/wordcount/j.go", imports("wordcount", ours+`daemon"`), "floor 8"},
	{"a package that nobody planned", tidy.Layering, "internal/stuff/s.go", "package stuff\n", "package internal/stuff is on no floor"},
	{"generated code in the wrong hands", tidy.Layering, "client/c.go", imports("client", ours+`proto/clientpb"`), "generated code is for rpc/grpc"},
	{"generated code in the right hands", tidy.Layering, "rpc/grpc/c.go", imports("grpc", ours+`proto/clientpb"`), ""},
	{"frames outside tests", tidy.Layering, "netstack/wire/w.go", imports("wire", ours+`proto/datapb"`), "generated code"},
	{"frames in the tests of wire", tidy.Layering, "netstack/wire/w_test.go", imports("wire", ours+`proto/datapb"`), ""},
	{"jobs in the network stack", tidy.Layering, "netstack/partition/p.go", imports("partition", ours+`jobgraph"`), "does not know jobs"},
	{"the simulator outside tests", tidy.Layering, "daemon/d.go", imports("daemon", ours+`sim"`), "the simulator is for tests"},

	{"a module that is not listed", tidy.External, "jobmanager/jobmaster/j.go", imports("jobmaster", `"google.golang.org/grpc/codes"`),
		"package jobmanager/jobmaster (floor 4) imports google.golang.org/grpc/codes"},
	{"a module that is listed", tidy.External, "rpc/grpc/c.go", imports("grpc", `"google.golang.org/grpc/codes"`), ""},
	{"a test's module outside tests", tidy.External, "codec/c.go", imports("codec", `"pgregory.net/rapid"`), "pgregory.net/rapid"},
	{"a test's module", tidy.External, "codec/c_test.go", imports("codec", `"pgregory.net/rapid"`), ""},
	{"a module without a reason", tidy.External, "go.mod", "require (\n\texample.com/x v1.2.3\n\texample.com/y v1.0.0 // indirect\n)\n", "no line about `example.com/x`"},

	{"a logger in a core's neighbour", tidy.External, "netstack/gate/g.go", imports("gate", `"go.uber.org/zap"`), "netstack/gate (floor 2) imports go.uber.org/zap"},
	{"a logger in a room below a listed one", tidy.External, "taskmanager/task/t.go", imports("task", `"go.uber.org/zap"`), ""},
	{"a contract suite's module", tidy.External, "statebackend/statetest/s.go", imports("statetest", `"pgregory.net/rapid"`), ""},
	{"a root test's module elsewhere", tidy.External, "rest/r_test.go", imports("rest", `"github.com/zeebo/xxh3"`), "xxh3"},

	{"a module in a core", tidy.Pure, "jobmanager/failover/f.go", imports("failover", `"go.uber.org/zap"`), "pure package jobmanager/failover imports go.uber.org/zap"},
	{"a lock in a core", tidy.Pure, "taskmanager/barrier/h.go", imports("barrier", `"sync"`), "pure package taskmanager/barrier imports sync"},
	{"a core importing what its floor may", tidy.Pure, "jobmanager/checkpointing/c.go", imports("checkpointing", ours+`jobgraph"`), "(floor 1), which is not in its list"},
	{"a clock in a core", tidy.Pure, "jobmanager/failover/f.go", "package failover\nimport \"time\"\nvar t = time.Now()\n", "time.Now"},
	{"a duration in a core", tidy.Pure, "jobmanager/failover/f.go", "package failover\nimport \"time\"\nvar t time.Duration = time.Second\n", ""},
	{"a channel in a core", tidy.Pure, "jobgraph/j.go", "package jobgraph\nvar c chan int\n", "a channel"},
	{"output of a core", tidy.Pure, "jobgraph/j.go", "package jobgraph\nimport \"fmt\"\nfunc f() { fmt.Println() }\n", "fmt.Println"},
	{"a core's file", tidy.Pure, "jobmanager/jobmaster/core_acks.go", "package jobmaster\nfunc f() { go f() }\n", "a goroutine"},
	{"a shell's file beside it", tidy.Pure, "jobmanager/jobmaster/loop.go", "package jobmaster\nvar c chan int\n", ""},
	{"a core's tests", tidy.Pure, "jobgraph/j_test.go", imports("jobgraph", `"os"`), ""},

	{"no doc.go", tidy.Docs, "rest/r.go", "package rest\n", "package rest has no doc.go"},
	{"a doc.go that says nothing", tidy.Docs, "rest/doc.go", "// Package rest rests.\npackage rest\n", "at least 3 lines"},
	{"a doc.go of another package", tidy.Docs, "rest/doc.go", "// Package test\n// a\n// b\npackage rest\n", `begins with "Package rest "`},
	{"a doc.go", tidy.Docs, "rest/doc.go", "// Package rest answers\n// HTTP\n// requests.\npackage rest\n", ""},
	{"a command", tidy.Docs, "cmd/weir/doc.go", "// Command weir does all.\npackage main\n", ""},

	{"a go statement", tidy.Goroutines, "rest/r.go", "package rest\nfunc f() { go f() }\n", "package rest has a go statement"},
	{"a renamed AfterFunc", tidy.Goroutines, "rest/r.go", "package rest\nimport tt \"time\"\nvar f = tt.AfterFunc\n", "time.AfterFunc"},
	{"a WaitGroup", tidy.Goroutines, "rest/r.go", "package rest\nimport \"sync\"\nvar w sync.WaitGroup\n", "sync.WaitGroup"},
	{"a go statement in a test", tidy.Goroutines, "rest/r_test.go", "package rest\nfunc f() { go f() }\n", ""},
	{"a go statement in group", tidy.Goroutines, "internal/group/g.go", "package group\nfunc f() { go f() }\n", ""},

	{"a skip", tidy.Skips, "rest/r_test.go", "package rest\nfunc f(t T) { t.Skipf(\"no\") }\n", "t.Skipf"},
	{"another method called Skip", tidy.Skips, "rest/r.go", "package rest\nfunc f(d D) { d.Skip(3) }\n", ""},

	{"a sleep in a test", tidy.Sleeps, "rest/r_test.go", "package rest\nimport \"time\"\nfunc TestX() { time.Sleep(1) }\n", "time.Sleep"},
	{"a sleep in a bubble", tidy.Sleeps, "rest/r_test.go",
		"package rest\nimport (\"time\"; \"testing/synctest\")\nfunc TestX() { synctest.Test(t, func() { time.Sleep(1) }) }\n", ""},
	{"a sleep beside a bubble", tidy.Sleeps, "rest/r_test.go",
		"package rest\nimport (\"time\"; \"testing/synctest\")\nfunc TestX() { synctest.Test(t, nil); time.Sleep(1) }\n", "time.Sleep"},
	{"a sleep in a shell", tidy.Sleeps, "daemon/d.go", "package daemon\nimport \"time\"\nfunc f() { time.Sleep(1) }\n", "time.Sleep"},
	{"a sleep of user code", tidy.Sleeps, "examples/slow/s.go", "package slow\nimport \"time\"\nfunc f() { time.Sleep(1) }\n", ""},

	{"a stutter", tidy.Names, "taskmanager/barrier/h.go", "package barrier\ntype BarrierHandler struct{}\n", `barrier.BarrierHandler says "barrier" twice`},
	{"the package's noun itself", tidy.Names, "jobgraph/j.go", "package jobgraph\ntype JobGraph struct{}\ntype Jobgraphs int\n", ""},
	{"a file named for nothing", tidy.Names, "rest/helpers_test.go", "package rest\n", `"helpers" says nothing`},

	{"a context as a field", tidy.ContextFields, "rest/r.go", "package rest\nimport \"context\"\ntype T struct { ctx context.Context }\n", "a context as a field"},
	{"an untyped atomic", tidy.Atomics, "rest/r.go", "package rest\nimport \"sync/atomic\"\nvar n int64\nfunc f() { atomic.AddInt64(&n, 1) }\n", "atomic.AddInt64"},
	{"a typed atomic", tidy.Atomics, "rest/r.go", "package rest\nimport \"sync/atomic\"\nvar n atomic.Int64\nfunc f() { n.Add(1) }\n", ""},
	{"the environment in a low room", tidy.Surroundings, "netstack/n.go", "package netstack\nimport \"os\"\nvar e = os.Getenv(\"E\")\n", "calls os.Getenv"},
	{"the environment in the daemon", tidy.Surroundings, "daemon/d.go", "package daemon\nimport \"os\"\nvar e = os.Getenv(\"E\")\n", ""},
	{"a random hash", tidy.Surroundings, "codec/c.go", imports("codec", `"hash/maphash"`), "imports hash/maphash"},

	{"something unfinished", tidy.Words, "docs/x.md", "TO" + "DO: write\n", "docs/x.md:1"},
	{"a silenced linter", tidy.Words, "rest/r.go", "package rest //no" + "lint\n", "rest/r.go:1"},
	{"a path of one machine", tidy.Words, "Makefile", "x:\n\tcp /wo" + "rk/y .\n", "Makefile:2"},
	{"a word that only looks alike", tidy.Words, "docs/x.md", "see net/work/x and TODOs\n", ""},

	{"a citation of nothing", tidy.Citations, "rest/r.go", "package rest // DECISIONS 99\n", "rest/r.go:1: docs/decisions/settled.md has no number 99"},
	{"a rule that is not restated", tidy.Citations, "rest/r.go", "package rest // behaviour §15.3\n", "docs/behaviour.md has no section 15.3"},
	{"a page of elsewhere", tidy.Citations, "rest/r.go", "package rest // see limits.md\n", "no page of this repository"},

	{"a test that is not there", tidy.NamedTests, "docs/x.md", "see `rest` TestNothing\n", "docs/x.md: there is no TestNothing"},

	{"a long function", tidy.Ratchet, "rest/r.go", "package rest\nfunc (r *R[T]) f() {\n" + strings.Repeat("\n", 69) + "}\n", "func rest/r.go R.f has 71 lines"},
	{"a long function of a test", tidy.Ratchet, "rest/r_test.go", "package rest\nfunc f() {\n" + strings.Repeat("\n", 119) + "}\n", "has 121 lines"},
	{"a function of just the limit", tidy.Ratchet, "rest/r.go", "package rest\nfunc f() {\n" + strings.Repeat("\n", 68) + "}\n", ""},
	{"a long file", tidy.Ratchet, "rest/r.go", "package rest\n" + strings.Repeat("\n", 800), "file rest/r.go has 801 lines"},
	{"a long file of tests", tidy.Ratchet, "rest/r_test.go", "package rest\n" + strings.Repeat("\n", 800), ""},
	{"an exception that is none", tidy.Ratchet, tidy.RatchetFile, "# x\nfile rest/r.go 900\n", "remove its line"},
	{"a ratchet file that cannot be read", tidy.Ratchet, tidy.RatchetFile, "file rest/r.go\n", "want a name and a number"},
}

func TestPlantedViolations(t *testing.T) {
	t.Parallel()
	for _, p := range planted {
		t.Run(strings.ReplaceAll(p.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			got := p.check(plant(t, map[string]string{p.path: p.src}))
			if p.want == "" && len(got) > 0 {
				t.Errorf("complains about what is allowed: %q", got)
			}
			if p.want != "" && (len(got) != 1 || !strings.Contains(got[0], p.want)) {
				t.Errorf("got %q, want one complaint with %q", got, p.want)
			}
		})
	}
}

func TestRatchetHoldsExceptionsAtTheirExactSize(t *testing.T) {
	t.Parallel()
	for size, want := range map[string]string{"805": "", "804": "grew from 804 to 805", "806": "shrank from 806 to 805"} {
		got := tidy.Ratchet(plant(t, map[string]string{
			"rest/r.go":      "package rest\n" + strings.Repeat("\n", 804),
			tidy.RatchetFile: "file rest/r.go " + size + "\n",
		}))
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.Contains(got[0], want)) {
			t.Errorf("limit %s: got %q, want %q", size, got, want)
		}
	}
}

func TestCitationsAreFoundByNumberOrChapter(t *testing.T) {
	t.Parallel()
	got := tidy.Citations(plant(t, map[string]string{
		"docs/decisions/settled.md": "1. **One**\n",
		"docs/behaviour.md":         "## 15 Barriers\n### 21.1 Groups\n",
		"rest/r.go":                 "package rest // DECISIONS 1, behaviour §15.3, behaviour §21.1, behaviour §21.2\n",
	}))
	if len(got) != 1 || !strings.Contains(got[0], "no section 21.2") {
		t.Errorf("got %q, want one complaint about section 21.2", got)
	}
}

func TestNamedTestsAreFoundInTheirPackage(t *testing.T) {
	t.Parallel()
	got := tidy.NamedTests(plant(t, map[string]string{
		"rest/r_test.go":  "package rest\nfunc TestRest() {}\n",
		"other/o_test.go": "package other\nfunc FuzzOther() {}\n",
		"docs/x.md":       "`rest` TestRest/one, `other` FuzzOther. TestRest\n\n`other` TestRest\n\nFuzzOther\n",
	}))
	if want := []string{"docs/x.md: there is no TestRest in other"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOtherModulesAreLeftAloneButForTheirWords(t *testing.T) {
	t.Parallel()
	tree := plant(t, map[string]string{
		"go.mod":       "module github.com/weirflow/weir\n",
		"tools/go.mod": "module github.com/weirflow/weir/tools\n",
		"tools/x.go":   "package main // FIX" + "ME\nfunc f() { go f() }\n",
	})
	if len(tree.Go) != 0 {
		t.Errorf("%d files of another module parsed", len(tree.Go))
	}
	if got := tidy.Words(tree); len(got) != 1 {
		t.Errorf("words: %q", got)
	}
}
