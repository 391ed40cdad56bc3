package flow

import (
	"sync/atomic"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/operator"
)

// run is what the fused functions of one chain share. The task's goroutine alone
// uses it.
type run struct {
	env     *operator.Env
	suspend *atomic.Bool
	// at is the site whose user code runs, so that a panic can be blamed.
	at    int
	sites []site
	// ts is the timestamp of the record on its way; whoever emits with another one
	// restores it.
	ts int64
	// members are the chain's operators, head first. The slice is made with the
	// chain, since counts may be asked for at any time.
	members []*member
	// err is the first failure; after it, records are dropped until the task notices.
	err error
}

// site is a piece of user code: an operator, or a key function or partitioner.
type site struct {
	operator string // whom the failure is the fault of
	part     string // names the function, if it is not the operator's own
	fault    weir.Fault
}

func (r *run) addSite(s site) int {
	r.sites = append(r.sites, s)
	return len(r.sites) - 1
}

// member is one operator of a running chain.
type member struct {
	run     *run
	node    *node
	id      weir.OperatorID
	runtime *Runtime
	site    int
	opened  bool
	// in and out are records, counted by the task's goroutine: in at the head only,
	// since elsewhere it is what the producer sent out; out not where it equals in.
	in, out  int64
	producer *member // in the same chain; nil at the head
	// sides stand for the side outputs, in the order of the node's: each has the
	// count of what went out of it.
	sides []*member
	// sent are in and out as last published for other goroutines.
	sent struct{ in, out atomic.Int64 }
	// finish emits an operator's last records; nil for most.
	finish func() error
	// finishPort is told that a port has ended; nil for most.
	finishPort func(port int) error
	// restore gives an operator what it starts from; nil for most.
	restore func() error
	// snapshot returns the operator's own state; nil for most.
	snapshot func() ([][]byte, error)
}

func newMember(r *run, n *node) *member {
	m := &member{run: r, node: n, id: weir.OperatorIDOf(n.logical.Name)}
	for range n.sides {
		m.sides = append(m.sides, &member{run: r, node: n, id: m.id})
	}
	return m
}

// start ties the member to its task.
func (m *member) start() {
	name, fault := m.node.logical.Name, weir.FaultUser
	if k := m.node.logical.Kind; k == jobgraph.KindSource || k == jobgraph.KindSink {
		fault = weir.FaultOutside
	}
	m.runtime = newRuntime(m.run.env, name)
	m.site = m.run.addSite(site{operator: name, fault: fault})
	for _, s := range m.sides {
		s.runtime, s.site = m.runtime, m.site
	}
}

// leave ends every call of user code: it turns a panic into the task's failure and
// publishes the counts.
func (r *run) leave(err *error) {
	if v := recover(); v != nil {
		r.panicked(v)
		*err = r.err
	}
	for _, m := range r.members { // producers come before their consumers
		m.publish()
	}
}

// fail records the failure of the member's operator.
func (m *member) fail(err error) { m.run.fail(m.site, err) }

// publish makes the counts visible to other goroutines.
func (m *member) publish() {
	if m.producer != nil {
		m.in = m.producer.out
	}
	if m.node.oneToOne {
		m.out = m.in
	}
	if m.sent.in.Load() != m.in {
		m.sent.in.Store(m.in)
	}
	out := m.out
	for _, s := range m.sides {
		out += s.out
	}
	if m.sent.out.Load() != out {
		m.sent.out.Store(out)
	}
}
