// Command ownmodule is a job as a user writes it: in a module of its own, with a
// main of three lines. The binary is JobManager, TaskManager and client:
//
//	go run . run word-count
package main

import "github.com/weirflow/weir/daemon"

func main() { daemon.Main(WordCount) }
