package main

import (
	"github.com/weirflow/weir/daemon"
	"github.com/weirflow/weir/jobs"
)

func main() { daemon.Main(jobs.All()...) }
