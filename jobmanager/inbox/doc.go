// Package inbox is the queue in front of a loop: anybody posts, one goroutine takes.
//
// It must not know what letters mean. Post never waits and keeps the order of each
// sender; the loop polls [Inbox.Take] and sleeps on [Inbox.Wake]. A closed inbox
// drops what is posted. One lock, a leaf, never held over a wait.
package inbox
