// Package link carries frames between two TaskManagers.
//
// It owns the seam [Transport]: connections that carry whole frames in order, both
// ways. It must not know what is in a frame, who the peers are (netstack says Hello
// on every new connection) or what a channel is.
//
// A process listens once ([Transport.Listen], [Listener.Accept]) and dials others
// ([Transport.Dial]). On a [Conn] one goroutine sends and another receives; either
// may wait for the network, so neither may hold a lock. [Memory] is the
// implementation for tests and simulation; netstack/link/grpclink the one for
// processes. Both pass linktest.
//
// # Invariants
//
//  1. A frame arrives whole, in order and at most once, or the connection ends.
//  2. The reference in the view given to Send is released exactly once, whatever
//     Send returns.
//  3. After Close, or after the other end closed or died, Send and Recv return an
//     error; neither is left waiting.
//  4. A message is valid until the next Recv on its connection.
//
// Memory starts no goroutine. Locks: Memory.mu and one per pipe, leaves. Read
// link.go.
package link
