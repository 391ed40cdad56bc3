// Package quota lets a job in this process run for just so many records at a time, so that
// they can be sampled.
//
// It owns [Quota], which a source asks how many records it may have emitted and counters
// tell how many have arrived. It must not know what the job does.
//
// The source's reader calls SetWake when it is opened and Allowed when it is polled; each
// counter calls Counted with every [Report] records; [Quota.Run] lets records through
// and returns when they have arrived.
//
// No goroutines or locks: atomics, and a channel of one. Read quota.go.
package quota
