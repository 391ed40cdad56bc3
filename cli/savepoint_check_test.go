package cli

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirflow/weir/blobstore/fs"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/jobmanager/checkpointing/store"
	"github.com/weirflow/weir/operator"
)

// jobCatalog has one job: numbers, counted by key. Parameters change it.
type jobCatalog struct{}

func (jobCatalog) Entrypoints() []operator.Entrypoint { return []operator.Entrypoint{{Name: "demo"}} }

func (jobCatalog) Build(_ context.Context, entrypoint string, params map[string]string) (operator.Program, error) {
	switch {
	case entrypoint != "demo":
		return nil, operator.ErrUnknownEntrypoint
	case params["broken"] != "":
		panic("the builder is broken")
	}
	value, count := "int64", "count"
	if params["value"] != "" {
		value = params["value"]
	}
	if params["count"] != "" {
		count = params["count"]
	}
	return jobProgram{&jobgraph.Logical{Entrypoint: "demo", Operators: []jobgraph.Operator{
		{Name: "numbers", Kind: jobgraph.KindSource, Out: "string"},
		{Name: count, Kind: jobgraph.KindProcess, In: "string", Out: "string",
			States: []jobgraph.State{{Name: "total", Kind: "value", Key: "string", Value: value}},
			Inputs: []jobgraph.Input{{From: "numbers", Partitioning: jobgraph.Hash, Key: "string", Codec: "string"}}},
		{Name: "out", Kind: jobgraph.KindSink, In: "string", Inputs: []jobgraph.Input{{From: count, Codec: "string"}}},
	}}}, nil
}

type jobProgram struct{ logical *jobgraph.Logical }

func (p jobProgram) Logical() *jobgraph.Logical { return p.logical }
func (jobProgram) NewChain(*jobgraph.Vertex, *jobgraph.JobGraph) (operator.Chain, error) {
	return nil, errors.New("nothing runs here")
}
func (jobProgram) NewEnumerator(string) (operator.Enumerator, error) {
	return nil, errors.New("nothing runs here")
}

func TestCheckSaysBeforehandWhetherAJobCanStart(t *testing.T) {
	t.Parallel()
	s := sampleSnapshot(t)
	s.Channels, s.Header.Hooks = nil, nil
	dir := putSnapshot(t, s)
	for name, c := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"fits":          {nil, ExitOK, []string{"numbers   operator     dealt    parallelism was 2, is 1", "count     state total  taken    schema is equal: string → int64", "out       operator     new", "the job can start from it"}},
		"value schema":  {[]string{"--param", "value=string"}, ExitFailure, []string{"state total  REFUSED", "values of schema int64, and in the job of string", "1 refused"}},
		"gone":          {[]string{"--param", "count=renamed"}, ExitFailure, []string{`REFUSED  it has state of operator "count"`}},
		"gone, allowed": {[]string{"--param", "count=renamed", "--allow-non-restored-state"}, ExitOK, []string{"dropped", "renamed   operator  new"}},
		"too wide":      {[]string{"--parallelism", "70"}, ExitFailure, []string{"parallelism 70, its state has only 64 key groups"}},
		"too many keys": {[]string{"--set", "pipeline.max-parallelism=128"}, ExitFailure, []string{"maximum parallelism 128, its state has 64 key groups"}},
		"no such job":   {[]string{}, ExitUsage, nil},
		"bad option":    {[]string{"--set", "paralelism.default=2"}, ExitUsage, nil},
		"panics":        {[]string{"--param", "broken=1"}, ExitUsage, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entry := "demo"
			if name == "no such job" {
				entry = "other"
			}
			cmd := newCommand()
			cmd.roles.Catalog = jobCatalog{}
			code := cmd.run(t.Context(), append([]string{"savepoint", "check", dir, entry}, c.args...)...)
			if code != c.code {
				t.Errorf("exit code %d: %s%s", code, cmd.stdout.String(), cmd.stderr.String())
			}
			for _, want := range c.want {
				if !strings.Contains(cmd.stdout.String(), want) {
					t.Errorf("no %q in\n%s", want, cmd.stdout.String())
				}
			}
			if c.want == nil {
				return
			}
			script := newCommand()
			script.roles.Catalog = jobCatalog{}
			script.run(t.Context(), append([]string{"savepoint", "check", dir, entry, "-o", "json"}, c.args...)...)
			var out checkJSON
			if err := json.Unmarshal(script.stdout.Bytes(), &out); err != nil || out.OK != (c.code == ExitOK) || out.Checkpoint != 7 || len(out.Verdicts) < 3 {
				t.Errorf("%v: %s", err, script.stdout.String())
			}
		})
	}
}

func TestCheckSaysWhoHasClaimedTheSnapshot(t *testing.T) {
	t.Parallel()
	dir := putSnapshot(t, sampleSnapshot(t))
	blobs, err := fs.OpenExisting(filepath.Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer blobs.Close()
	claim := store.Claim{Cluster: "other", Job: "09000000000000000000000000000000"}
	if err := store.TakeClaim(t.Context(), blobs, filepath.Base(dir), claim, nil); err != nil {
		t.Fatal(err)
	}
	cmd := newCommand()
	cmd.roles.Catalog = jobCatalog{}
	cmd.run(t.Context(), "savepoint", "check", dir, "demo")
	if want := `claimed: job 09000000000000000000000000000000 of cluster "other"`; !strings.Contains(cmd.stdout.String(), want) {
		t.Errorf("no %q in\n%s%s", want, cmd.stdout.String(), cmd.stderr.String())
	}
}
