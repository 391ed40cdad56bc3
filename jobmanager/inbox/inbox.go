package inbox

import "sync"

// Inbox is an unbounded queue. Any goroutine may post; one takes.
type Inbox[T any] struct {
	wake chan struct{} // holds a token while there may be letters

	mu struct {
		sync.Mutex
		letters []T
		closed  bool
	}
}

// New returns an empty inbox.
func New[T any]() *Inbox[T] { return &Inbox[T]{wake: make(chan struct{}, 1)} }

// Post adds a letter, and says whether the inbox was open.
func (b *Inbox[T]) Post(letter T) bool {
	b.mu.Lock()
	open := !b.mu.closed
	if open {
		b.mu.letters = append(b.mu.letters, letter)
	}
	b.mu.Unlock()
	if open {
		select {
		case b.wake <- struct{}{}:
		default:
		}
	}
	return open
}

// Take returns all letters, in order of their posting, and leaves none.
func (b *Inbox[T]) Take() []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	letters := b.mu.letters
	b.mu.letters = nil
	return letters
}

// Wake yields when there may be letters.
func (b *Inbox[T]) Wake() <-chan struct{} { return b.wake }

// Close refuses further letters and returns those that nobody took.
func (b *Inbox[T]) Close() []T {
	b.mu.Lock()
	b.mu.closed = true
	b.mu.Unlock()
	return b.Take()
}
