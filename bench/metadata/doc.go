// Command metadata reports what the _metadata of a checkpoint of many subtasks costs:
// its size, how long it takes to write (with the read back), to walk and to verify, and by
// how much the process grows meanwhile, which is to be at most 32 MiB. It ends with exit
// code 1 if that is more.
//
// It owns the snapshot that it makes up. It must know nothing of clusters. Each phase is a
// process of its own, since memory that was taken once does not tell what the next takes.
//
//	go run ./bench/metadata -subtasks 10000
//
// No goroutines, no locks. Read main.go.
package main
