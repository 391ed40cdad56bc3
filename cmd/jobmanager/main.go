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
