package flow

import (
	"context"

	"github.com/weirflow/weir/jobgraph"
)

// TestingT is what [Check] needs of a *testing.T.
type TestingT interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Check builds a job twice and fails the test unless both builds succeed and write
// the same graph, as every process of a cluster must. For users' tests.
func Check(t TestingT, job Job, params map[string]string) {
	t.Helper()
	c, err := NewCatalog(job)
	if err != nil {
		t.Fatalf("%v", err)
		return
	}
	var texts [2]string
	for i := range texts {
		p, err := c.Build(context.Background(), job.Name(), params)
		if err != nil {
			t.Fatalf("build %d: %v", i+1, err)
			return
		}
		texts[i] = p.Logical().Text()
	}
	if d := jobgraph.Diff(texts[0], texts[1]); d != "" {
		t.Fatalf("job %q is not deterministic: two builds differ: %s", job.Name(), d)
	}
}
