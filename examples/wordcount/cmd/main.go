package main

import (
	"github.com/weirflow/weir/daemon"
	"github.com/weirflow/weir/examples/wordcount"
)

func main() { daemon.Main(wordcount.Job) }
