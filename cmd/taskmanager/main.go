// Command taskmanager is weir in the role of a TaskManager, for those who want a binary of
// that name without a link. It takes the flags of weir taskmanager.
package main

import (
	"os"

	"github.com/weirflow/weir/daemon"
	"github.com/weirflow/weir/jobs"
)

func main() {
	os.Args[0] = "taskmanager"
	daemon.Main(jobs.All()...)
}
