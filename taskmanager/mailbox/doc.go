// Package mailbox holds the letters to one task until it reads them.
//
// It owns their order and their bound. It must not know what is in them: the
// package of the task declares its letters and makes a [Mailbox] of that type.
//
// Anyone posts. The task's goroutine polls [Mailbox.Take] until nothing is left,
// does its work, and when there is none sleeps on [Mailbox.Wake] beside whatever
// else may wake it. Each post also sets a flag of the task's, so that a batch of
// records can be left between two records at the price of one atomic load.
//
// Invariants:
//
//  1. Letters are taken in the order of their priorities, and within one in the
//     order in which they were posted.
//  2. A class that is full refuses with [ErrFull]; nothing waits, and no class can
//     take another's room.
//  3. The flag is set after a letter is in: whoever clears it and then takes until
//     nothing is left has missed none.
//  4. After Close every post is refused with [ErrClosed]; what was left is returned
//     by Close, once.
//
// Mailbox.mu is a leaf. No goroutines. Read mailbox.go.
package mailbox
