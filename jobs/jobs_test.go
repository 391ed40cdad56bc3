package jobs_test

import (
	"testing"

	"github.com/weirflow/weir/examples/wordcount"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/jobs"
)

// required are the parameters that have no default.
var required = map[string]map[string]string{wordcount.Name: {"input": "in", "output": "out"}}

func TestJobsMakeACatalogAndAreDeterministic(t *testing.T) {
	t.Parallel()
	if _, err := flow.NewCatalog(jobs.All()...); err != nil {
		t.Fatal(err)
	}
	for _, j := range jobs.All() {
		flow.Check(t, j, required[j.Name()])
		if e := j.Entrypoint(); e.Help == "" {
			t.Errorf("%s: no help", e.Name)
		}
	}
}
