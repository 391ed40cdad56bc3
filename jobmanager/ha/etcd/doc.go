// Package etcd is the ha.Registry on an etcd: a cluster of its own, or the one that
// ha/etcdserver runs in this process.
//
// It owns the lease, the election key and the form of a guarded transaction; it must
// not know what the keys mean. Only daemon imports it.
//
// [New] takes a client; [Dial] makes one. Keys lie below /weir/<cluster>/.
//
// Invariants:
//
//  1. The election is one key with a lease, created only if it is absent: whose create
//     revision it has leads. There is no queue to be stuck in.
//  2. A lease is kept by single requests that we time, not by a stream that can go
//     quiet: a leadership is given up when the last answered request was sent so long
//     ago that the lease might run out, and never later.
//  3. A campaign that fails leaves no lease behind: it is revoked, or runs out.
//  4. Nothing is concluded from a watch: it only says when to read again.
//  5. Any error of a transaction but a refusal is doubtful.
//
// Goroutines: "lease", one per leadership won, until it is lost or closed. Locks:
// Registry.mu and leadership.mu, leaves. Read registry.go, then election.go.
package etcd
