// Package wordcount is the job that counts the words of files and writes the totals to
// files, each exactly once.
//
// It owns the job "wordcount" and what a word is ([Words]): a run of letters and digits,
// in lower case. It must not know the cluster that runs it. cmd is a binary that carries
// this job alone; docs/wordcount.md says how to try it.
//
// [Count] is the answer computed without a cluster, for tests.
//
// No goroutines, no locks. Read job.go.
package wordcount
