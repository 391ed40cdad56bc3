package jobs_test

import (
	"testing"

	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/jobs"
)

func TestJobsMakeACatalogAndAreDeterministic(t *testing.T) {
	t.Parallel()
	if _, err := flow.NewCatalog(jobs.All()...); err != nil {
		t.Fatal(err)
	}
	for _, j := range jobs.All() {
		flow.Check(t, j, nil)
		if e := j.Entrypoint(); e.Help == "" {
			t.Errorf("%s: no help", e.Name)
		}
	}
}
