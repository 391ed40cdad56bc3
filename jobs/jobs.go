package jobs

import (
	"github.com/weirflow/weir/examples/checkpointdemo"
	"github.com/weirflow/weir/examples/wordcount"
	"github.com/weirflow/weir/flow"
)

// All returns the jobs.
func All() []flow.Job {
	return []flow.Job{checkpointdemo.Job, wordcount.Job}
}
