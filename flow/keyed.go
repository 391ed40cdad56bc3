package flow

import (
	"bytes"
	"errors"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/codec"
	"github.com/weirflow/weir/internal/assert"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/operator"
)

// keyedOperator is what all inputs of a [Process] or [CoProcess] operator share while
// it runs: the user's object, its state and the current key.
type keyedOperator[K comparable, B any] struct {
	keys    *codec.Codec[K]
	setup   *Setup
	user    any
	timed   TimerProcessor[K, B] // user, if it is that
	context *Context[K]
	out     *Out[B]
	keyBuf  []byte
	// last and lastNext are the batch and the record up to which states were asked for.
	last     *operator.Batch
	lastNext int
}

// newKeyedOperator makes the operator of a user's object, and adds its timers to the graph.
func newKeyedOperator[K comparable, B any](s *Setup, keys *codec.Codec[K], user any) *keyedOperator[K, B] {
	o := &keyedOperator[K, B]{keys: keys, setup: s, user: user}
	n := s.node
	n.user = user
	if o.timed, _ = user.(TimerProcessor[K, B]); o.timed != nil {
		n.logical.States = append(n.logical.States, jobgraph.State{Name: timersState, Kind: "timers", Key: s.key})
	}
	return o
}

// open ties the operator to its task.
func (o *keyedOperator[K, B]) open(m *member, next any) error {
	r := m.run
	o.out = newOut[B](m, next)
	o.context = &Context[K]{Runtime: m.runtime, m: m}
	o.context.index = withoutKey
	if err := o.bind(m); err != nil {
		return err
	}
	m.keepState()
	o.setFinish(m)
	if f, ok := o.user.(InputFinisher[B]); ok {
		m.finishPort = func(port int) error {
			r.ts = operator.NoTimestamp
			return f.FinishInput(port, o.out)
		}
	}
	return nil
}

// setFinish has the operator's last records emitted, if it has any.
func (o *keyedOperator[K, B]) setFinish(m *member) {
	byKey, _ := o.user.(KeyFinisher[K, B])
	last, _ := o.user.(Finisher[B])
	if byKey == nil && last == nil {
		return
	}
	m.finish = func() error {
		m.run.ts = operator.NoTimestamp
		if byKey != nil {
			if err := o.finishKeys(m, byKey); err != nil || last == nil {
				return err
			}
		}
		return last.Finish(o.out)
	}
}

// finishKeys goes through the keys of the state that was declared first.
func (o *keyedOperator[K, B]) finishKeys(m *member, f KeyFinisher[K, B]) (err error) {
	if len(o.setup.states) == 0 {
		return errNoKeys
	}
	c := o.context
	defer func() { c.index = withoutKey }()
	o.setup.states[0].eachKey(func(key []byte) bool {
		if err = o.setKey(key, codec.Hash(key)); err == nil {
			m.run.ts, m.run.at = operator.NoTimestamp, m.site
			err = f.FinishKey(c, o.out)
		}
		return err == nil && m.run.err == nil
	})
	return err
}

var errNoKeys = errors.New("the operator has a method FinishKey, but no state that has keys")

// setKey makes a key of the backend's the current one. The bytes are the backend's, so
// the key is decoded from a copy if it refers to them.
func (o *keyedOperator[K, B]) setKey(key []byte, hash uint64) error {
	c := o.context
	o.keyBuf = append(o.keyBuf[:0], key...)
	decoded := o.keyBuf
	if o.keys.HasPointers() {
		decoded = bytes.Clone(key)
	}
	if err := o.keys.Decode(decoded, &c.value); err != nil {
		return &weir.Failure{Message: err.Error(), Fault: weir.FaultSystem}
	}
	c.hash, c.cursor.key, c.index = hash, o.keyBuf, withoutHint
	return nil
}

// bind ties states and timers to the task's backend.
func (o *keyedOperator[K, B]) bind(m *member) error {
	if len(o.setup.states) > 0 {
		backend, err := m.run.env.Backend(m.id)
		if err != nil {
			return err
		}
		for _, s := range o.setup.states {
			if err := s.bind(m, backend, &o.context.cursor); err != nil {
				return err
			}
		}
	}
	if o.timed == nil {
		return nil
	}
	var err error
	o.context.timers, err = m.run.env.Timers(m.id, func(hash uint64, key []byte, at int64) error { return o.fire(m, hash, key, at) })
	return err
}

// keyedHead decodes the batches of one input of a keyed operator.
type keyedHead[K comparable, A, B any] struct {
	op      *keyedOperator[K, B]
	m       *member
	r       *run
	context *Context[K]
	process Processor[K, A, B] // the user's
	out     *Out[B]
	key     func(A) K
	keys    *codec.Codec[K]
	values  *codec.Codec[A]
	keySite int
	place   *A
}

// newKeyedHead is called after the operator was opened.
func newKeyedHead[K comparable, A, B any](op *keyedOperator[K, B], m *member, in KeyedStream[K, A], values *codec.Codec[A], process Processor[K, A, B]) headFunc {
	h := &keyedHead[K, A, B]{
		op: op, m: m, r: m.run, context: op.context, process: process, out: op.out,
		key: in.key, keys: in.keys, values: values, place: new(A),
	}
	h.keySite = m.run.addSite(site{operator: m.node.logical.Name, part: in.part(), fault: weir.FaultUser})
	return h.run
}

// run first has the states of all keys of the batch loaded together; then it goes
// record by record.
func (h *keyedHead[K, A, B]) run(b *operator.Batch) {
	o, start := h.op, b.Next
	if start == 0 || b != o.last || start != o.lastNext {
		for _, s := range o.setup.states {
			s.prefetch(b.Hash[start:b.N], start)
		}
	}
	h.records(b)
	h.context.index = withoutKey
	h.m.in += int64(b.Next - start)
	o.last, o.lastNext = b, b.Next
}

// records runs records until the batch's end, a failure or the task's wish. It is one
// loop, since calls are a good part of what a record costs.
func (h *keyedHead[K, A, B]) records(b *operator.Batch) {
	r, c, site := h.r, h.context, h.m.site
	for i := b.Next; i < b.N; {
		payload := b.Payload[i]
		if err := h.values.Decode(payload, h.place); err != nil {
			r.failSystem(site, err)
			return
		}
		r.at = h.keySite
		c.value = h.key(*h.place)
		key := h.keys.Find(payload, &c.value)
		if key == nil {
			if key = h.encode(&c.value); key == nil {
				return
			}
		}
		if assert.Enabled && codec.Hash(key) != b.Hash[i] {
			r.fail(h.keySite, errors.New("the function gave another key than at the producer"))
			return
		}
		c.hash, c.cursor.key, c.index = b.Hash[i], key, i
		r.ts, r.at = b.Timestamp[i], site
		if err := h.process.Process(c, *h.place, h.out); err != nil {
			h.m.fail(err)
		}
		i++
		b.Next = i
		if r.err != nil || r.suspend.Load() {
			return
		}
	}
}

// encode encodes a key that is not a part of its record; nil after a failure.
func (h *keyedHead[K, A, B]) encode(key *K) []byte {
	o := h.op
	var err error
	if o.keyBuf, err = h.keys.Append(o.keyBuf[:0], key); err == nil {
		err = checkKey(o.keyBuf)
	}
	if err != nil {
		h.m.run.fail(h.keySite, err)
		return nil
	}
	return o.keyBuf
}

// fire runs a timer that is due.
func (o *keyedOperator[K, B]) fire(m *member, hash uint64, key []byte, at int64) (err error) {
	r, c := m.run, o.context
	if r.err != nil {
		return r.err
	}
	defer r.leave(&err)
	if err := o.setKey(key, hash); err != nil {
		m.fail(err)
		return r.err
	}
	r.ts, r.at = operator.NoTimestamp, m.site
	if err := o.timed.OnTimer(c, time.UnixMilli(at), o.out); err != nil {
		m.fail(err)
	}
	c.index = withoutKey
	return r.err
}
