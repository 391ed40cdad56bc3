// Package credit is the arithmetic of credit and backlog at both ends of a remote
// channel (behaviour §23).
//
// It owns [Ledger], the sender's count, and [Grants], the receiver's. It must not know
// buffers, sockets or what is sent.
//
// A data buffer needs one credit; an event needs none. Credit is a free buffer at the
// receiver: E exclusive ones of the channel, and floating ones of its gate. Every
// message carries the sender's backlog, and the receiver asks for floating buffers
// until backlog + E are free.
//
//	sender                                 receiver
//	Ledger.Add(n)          <- AddCredit -  n = Grants.Announce()
//	Ledger.Spend()         -- data ------> Grants.Take(); Grants.Backlog(b)
//	                                       Grants.Got(), Grants.Recycled() as buffers come free
//
// With E = 0 the sender says its backlog by a message of its own when it has no credit; the
// receiver forgets all credit when a blocking event comes (GiveUp), the sender when it is
// resumed (Reset).
//
// # Invariants
//
//  1. Credit at the sender + data on its way + unannounced credit = free buffers at
//     the receiver: never more is in flight than is held free for it.
//  2. Unannounced credit that turns from 0 to n calls for one AddCredit message, which
//     carries what has accumulated when it is sent.
//  3. Floating buffers are taken before exclusive ones.
//
// Plain values, no goroutine, no lock: a Ledger belongs to its connection and Grants
// to their gate, under their locks. Read grants.go, then ledger.go.
package credit
