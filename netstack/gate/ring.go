package gate

// ring is a queue that grows.
type ring[T any] struct {
	items []T // its length is a power of two, or 0
	first int
	n     int
}

func (r *ring[T]) len() int { return r.n }

// at returns the i-th item from the front.
func (r *ring[T]) at(i int) *T { return &r.items[(r.first+i)&(len(r.items)-1)] }

func (r *ring[T]) pushBack(v T) { r.insert(r.n, v) }

// insert puts v at position i; those from there on move back.
func (r *ring[T]) insert(i int, v T) {
	if r.n == len(r.items) {
		items := make([]T, max(8, 2*len(r.items)))
		for j := range r.n {
			items[j] = *r.at(j)
		}
		r.items, r.first = items, 0
	}
	r.n++
	for j := r.n - 1; j > i; j-- {
		*r.at(j) = *r.at(j - 1)
	}
	*r.at(i) = v
}

func (r *ring[T]) popFront() T {
	v := r.removeAt(0)
	return v
}

// removeAt takes the i-th item out; those before it move back.
func (r *ring[T]) removeAt(i int) T {
	v := *r.at(i)
	for j := i; j > 0; j-- {
		*r.at(j) = *r.at(j - 1)
	}
	var zero T
	*r.at(0) = zero
	r.first = (r.first + 1) & (len(r.items) - 1)
	r.n--
	return v
}
