// Command unaligned measures checkpoints whose barriers overtake: how long they take and
// how large they are under back pressure, with ten times the queue, after a timeout, and
// what it costs to be able to take them.
//
// It owns the clusters, which are real processes with an etcd and checkpoints on disk, the
// bare work, and what follows from the statistics of checkpoints. The jobs are the demo's
// (examples/checkpointdemo), with counters that note when they processed each record. It
// must not know how barriers travel.
//
//	go run ./bench/unaligned -run timeout
//	go run ./bench/unaligned rows            # every checkpoint
//	go run ./bench/unaligned rows -tenfold
//
// # How the bars are read
//
// All jobs of a phase run at the same time on one cluster, and so does the bare work: every
// 300 ms files of as many bytes as a row's last checkpoint are written and synced in the
// directory of the checkpoints, and a key is changed in an etcd on the same disk, guarded by
// a leadership and the key's revision. A checkpoint's bare files are as many as it has
// of that size: one of metadata, or one of in-flight data for each TaskManager, written at
// once. They stay, as a checkpoint's do. Checkpoints at which the queue was not full yet do
// not count.
//
// Back pressure, at 5 and 50 ms per record. Of each checkpoint's duration, trigger to link,
// we take off the rest of the record that was being processed when the first barrier came,
// at the counter where that was longest, and the run's median bare write and bare
// transaction. The same is taken off the checkpoints of the job without back pressure, which
// have no rest and few bytes. What is left, ours, is at most 1.5 × theirs: median ÷ median,
// since checkpoints of two jobs are no pairs. A barrier comes to a counter when the first source sent its; a
// record that a counter begins between that and its snapshot is not taken off. Neither is
// what a second barrier waits for that comes when the next record was begun.
//
// Size: the bytes captured are those of the records that sources had emitted before their
// barriers and counters had not processed before their snapshots, within 20 %.
//
// Ten times the queue, by ten times the buffers: trigger to the end of the last synchronous
// part, rest of the record included, is at most 1.3 × that of the usual queue, and from
// there to the last acknowledgement at most 1.5 × the bare write of the checkpoint's bytes
// that was nearest in time.
//
// Timeout of 1 s: at least 4 of 6 switched, and each checkpoint of the job without a timeout
// took longer than 1 s; duration − 1 s is at most 3 × the duration of the unaligned job at
// the same pace.
//
// Being able to: two jobs on clusters of their own (minicluster) in processes of their own,
// which count by key at full speed and take a checkpoint every 100 ms: one that aligns, and
// one that would overtake after 10 minutes. CPU time per record at least 0.95 × as good, and
// no more allocations.
//
// Goroutines: exec's, and those that write bare files. No locks. Read main.go, row.go,
// sample.go, judge.go, then able.go.
package main
