package netstack

import (
	"fmt"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/netstack/partition"
	"github.com/weirflow/weir/netstack/wire"
)

// maxParked bounds the requests that wait for their producer.
const maxParked = 1 << 16

// registry knows which partitions can be read here, and who waits for one. It is
// guarded by Stack.mu.
type registry struct {
	partitions map[partitionKey]*published
	newest     map[subtaskKey]weir.AttemptID // of each subtask with partitions here
	epochs     map[weir.JobID]epochUse       // the newest leader of each job with open tasks
	parked     map[partitionKey][]*request
	waiting    int // parked requests
}

// partitionKey names a partition: who makes it, and for which edge.
type partitionKey struct {
	producer weir.AttemptID
	edge     int
}

type subtaskKey struct {
	job weir.JobID
	weir.SubtaskID
}

func subtaskOf(a weir.AttemptID) subtaskKey { return subtaskKey{a.Job, a.SubtaskID()} }

// epochUse is a job's newest leader, and how many open tasks the job has.
type epochUse struct {
	epoch weir.LeaderEpoch
	tasks int
}

// published is a partition that can be read.
type published struct {
	*partition.ResultPartition
	consumers []Consumer
	linger    bool // its task is closed
}

// request is a consumer's wish to read a subpartition.
type request struct {
	key          partitionKey
	subpartition int
	consumer     weir.AttemptID
	epoch        weir.LeaderEpoch
	// grant and refuse answer it, without a lock; one of them is called once, unless
	// the request is withdrawn.
	grant  func(*partition.Subpartition)
	refuse func(code wire.FailureCode, err error)
	timer  *group.Timer // while parked
}

func newRegistry() registry {
	return registry{
		partitions: make(map[partitionKey]*published),
		newest:     make(map[subtaskKey]weir.AttemptID),
		epochs:     make(map[weir.JobID]epochUse),
		parked:     make(map[partitionKey][]*request),
	}
}

// older says whether attempt a of a subtask is older than b.
func older(a, b weir.AttemptID) bool {
	return a.Epoch < b.Epoch || a.Epoch == b.Epoch && a.N < b.N
}

func (r *registry) taskOpened(a weir.AttemptID) {
	u := r.epochs[a.Job]
	u.tasks++
	u.epoch = max(u.epoch, a.Epoch)
	r.epochs[a.Job] = u
}

func (r *registry) taskClosed(a weir.AttemptID) {
	u := r.epochs[a.Job]
	if u.tasks--; u.tasks > 0 {
		r.epochs[a.Job] = u
	} else {
		delete(r.epochs, a.Job)
	}
}

// find returns a subpartition, or a refusal, or neither if the producer may still come.
func (r *registry) find(q *request) (*partition.Subpartition, wire.FailureCode, error) {
	if u := r.epochs[q.key.producer.Job]; q.epoch < u.epoch {
		return nil, wire.CodeFenced, fmt.Errorf("epoch %d, here is %d: %w", q.epoch, u.epoch, ErrFenced)
	}
	if n, ok := r.newest[subtaskOf(q.key.producer)]; ok && older(q.key.producer, n) {
		return nil, wire.CodeFenced, fmt.Errorf("%s, here is %s: %w", q.key.producer, n, ErrFenced)
	}
	p := r.partitions[q.key]
	switch {
	case p == nil && r.waiting >= maxParked:
		return nil, wire.CodePartitionNotFound, fmt.Errorf("%d requests wait: %w", r.waiting, ErrPartitionNotFound)
	case p == nil:
		return nil, 0, nil
	case q.subpartition >= len(p.consumers):
		return nil, wire.CodeProtocol, fmt.Errorf("subpartition %d of %d: %w", q.subpartition, len(p.consumers), ErrProtocol)
	case p.consumers[q.subpartition].Attempt != q.consumer:
		return nil, wire.CodeFenced, fmt.Errorf("consumer %s, want %s: %w", q.consumer, p.consumers[q.subpartition].Attempt, ErrFenced)
	}
	return p.Subpartition(q.subpartition), 0, nil
}

func (r *registry) park(q *request) {
	r.parked[q.key] = append(r.parked[q.key], q)
	r.waiting++
}

// unpark withdraws a request. It returns false if it does not wait any more.
func (r *registry) unpark(q *request) bool {
	list := r.parked[q.key]
	for i, x := range list {
		if x == q {
			r.setParked(q.key, append(list[:i:i], list[i+1:]...))
			r.waiting--
			return true
		}
	}
	return false
}

func (r *registry) setParked(key partitionKey, list []*request) {
	if len(list) == 0 {
		delete(r.parked, key)
		return
	}
	r.parked[key] = list
}

// publish adds a partition. It returns the requests to answer now: those for it, and
// those for older attempts; and partitions of older attempts to fail.
func (r *registry) publish(key partitionKey, p *published) (answer []*request, outdated []*published) {
	if !p.Ended() { // nobody would remove it
		r.partitions[key] = p
	}
	r.newest[subtaskOf(key.producer)] = key.producer
	for k, list := range r.parked {
		if subtaskOf(k.producer) == subtaskOf(key.producer) && (k == key || older(k.producer, key.producer)) {
			answer = append(answer, list...)
			r.waiting -= len(list)
			delete(r.parked, k)
		}
	}
	for k, old := range r.partitions {
		if subtaskOf(k.producer) == subtaskOf(key.producer) && older(k.producer, key.producer) && old.linger {
			outdated = append(outdated, old)
		}
	}
	return answer, outdated
}

// remove forgets a partition that nobody reads any more.
func (r *registry) remove(key partitionKey) {
	delete(r.partitions, key)
	for k := range r.partitions {
		if k.producer == key.producer {
			return
		}
	}
	if r.newest[subtaskOf(key.producer)] == key.producer {
		delete(r.newest, subtaskOf(key.producer))
	}
}

// lingering returns what finished tasks of a job left.
func (r *registry) lingering(job weir.JobID) (found []*published) {
	for k, p := range r.partitions {
		if k.producer.Job == job && p.linger {
			found = append(found, p)
		}
	}
	return found
}

func (r *registry) all() (found []*published) {
	for _, p := range r.partitions {
		found = append(found, p)
	}
	return found
}
