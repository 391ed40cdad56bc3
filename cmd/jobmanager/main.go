// Command jobmanager is weir in the role of a JobManager, for those who want a binary of
// that name without a link. It takes the flags of weir jobmanager.
package main

import (
	"os"

	"github.com/weirflow/weir/daemon"
	"github.com/weirflow/weir/jobs"
)

func main() {
	os.Args[0] = "jobmanager"
	daemon.Main(jobs.All()...)
}
