// Command coordinator measures what a checkpoint costs the JobManager to decide, by the
// number of subtasks: everything that jobmaster.Core does from the periodic timer to the
// deletion of the checkpoint before last, with simulated answers of tasks and storage.
//
// It owns [world], which plays everything around a core. It must not know how the core
// decides. The bars are on how the cost of a subtask grows with their number; the bare
// side is the same core with a tenth of them.
//
//	go run ./bench/coordinator -run 10000
//
// Each side is a process of its own. No goroutines, no locks. Read main.go, then world.go.
package main
