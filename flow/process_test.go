package flow_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/codec"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/flow/flowtest"
	"github.com/weirflow/weir/operator"
	"pgregory.net/rapid"
)

type wordCounter struct {
	count *flow.Value[int64]
	last  *flow.Value[string]
	seen  operator.Counter
}

type wordTotal struct {
	Word, Last string
	N          int64
}

func newWordCounter(s *flow.Setup) flow.Processor[string, string, wordTotal] {
	return &wordCounter{count: flow.NewValue[int64](s, "count"), last: flow.NewValue[string](s, "last")}
}

func (c *wordCounter) Open(r *flow.Runtime) error {
	c.seen = r.Counter("seen")
	r.Gauge("opened").Set(1)
	r.Logger().Info("opened")
	return nil
}

func (c *wordCounter) Process(ctx *flow.Context[string], w string, out *flow.Out[wordTotal]) error {
	c.seen.Add(1)
	last := c.last.Get()
	c.last.Set(w)
	c.count.Update(func(n *int64) { *n++ })
	ctx.SetTimer(ctx.Now().Add(time.Second))
	if w == "gone" {
		c.count.Clear()
		c.last.Clear()
		ctx.DeleteTimer(ctx.Now().Add(time.Second))
	}
	n, ok := c.count.Lookup()
	if ok != (w != "gone") {
		return fmt.Errorf("count of %q: %v", w, ok)
	}
	out.Emit(wordTotal{ctx.Key(), last, n})
	return nil
}

func (c *wordCounter) OnTimer(ctx *flow.Context[string], at time.Time, out *flow.Out[wordTotal]) error {
	out.Emit(wordTotal{"timer " + ctx.Key(), at.UTC().Format("05"), c.count.Get()})
	return nil
}

func (c *wordCounter) Finish(out *flow.Out[wordTotal]) error {
	out.Emit(wordTotal{Word: "the end"})
	return nil
}

func wordCount(got *[]string) flow.Job {
	return define(func(g *flow.Graph) {
		in := flow.From(g, "in", numbers(1))
		words := flow.FlatMap(in, "words", repeat, flow.Parallelism(2))
		byWord := flow.KeyBy(words, "first-letter", func(w string) string { return w[:1] })
		counts := flow.Process(byWord, "count", newWordCounter)
		flow.To(counts, "out", flow.SinkFunc[wordTotal](func(ts int64, v wordTotal) error {
			*got = append(*got, fmt.Sprintf("%s %d (%s)", v.Word, v.N, v.Last))
			return nil
		}))
	})
}

// keyed encodes records as a producer would.
func keyed(t testing.TB, words ...string) []flowtest.Record {
	t.Helper()
	keys, err := codec.ForKey[string]()
	if err != nil {
		t.Fatal(err)
	}
	values, err := codec.For[string]()
	if err != nil {
		t.Fatal(err)
	}
	var records []flowtest.Record
	for i, w := range words {
		k := w[:1]
		key, err := keys.Append(nil, &k)
		if err != nil {
			t.Fatal(err)
		}
		payload, err := values.Append(nil, &w)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, flowtest.Record{Hash: codec.Hash(key), Timestamp: int64(i), Payload: payload})
	}
	return records
}

func TestKeyedOperatorHasStateTimersAndMetrics(t *testing.T) {
	t.Parallel()
	var got []string
	task := flowtest.Open(t, wordCount(&got), nil, flowtest.At("count"))
	task.MustFeed(keyed(t, "ant", "bee", "ape", "gone", "gone"))
	if want := []string{"a 1 ()", "b 1 ()", "a 2 (ant)", "g 0 ()", "g 0 ()"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	got = nil
	if err := task.Advance(500 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	task.MustFeed(keyed(t, "auk"))
	if err := task.Advance(2 * time.Second); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a 3 (ape)", "timer a 3 (01)", "timer b 1 (01)", "timer a 3 (01)"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if n := task.Counters["count/seen"].Load(); n != 6 {
		t.Errorf("counter %d", n)
	}
	if g := task.Gauges["count/opened"]; g.Value != 1 {
		t.Errorf("gauge %v", g.Value)
	}
	got = nil
	if err := task.Chain.Finish(); err != nil || !slices.Equal(got, []string{"the end 0 ()"}) {
		t.Errorf("finish: %v, %q", err, got)
	}
}

func TestProducerAndConsumerAgreeOnKeys(t *testing.T) {
	t.Parallel()
	var got []string
	job := define(func(g *flow.Graph) {
		words := flow.FlatMap(flow.From(g, "in", numbers(40)), "words", repeat)
		byWord := flow.KeyBy(words, "by-word", func(w string) string { return w })
		flow.To(flow.Process(byWord, "count", newWordCounter), "out", flow.SinkFunc[wordTotal](func(ts int64, v wordTotal) error {
			got = append(got, fmt.Sprintf("%s %d", v.Word, v.N))
			return nil
		}))
	})
	source := flowtest.Open(t, job, nil, flowtest.At("in"))
	source.Poll(1000)
	records := source.Emitted()
	if len(records) != 40*39/2 || records[0].Timestamp != 1 {
		t.Fatalf("%d records, first %v", len(records), records[0])
	}
	total := 0
	for subtask := range 3 { // each has its key groups
		got = nil
		task := flowtest.Open(t, job, nil, flowtest.Options{Operator: "count", Parallelism: 3, Subtask: subtask})
		task.MustFeed(records)
		total += len(got)
		for n := 1; n < 40; n++ {
			if last := fmt.Sprintf("%d %d", n, n); slices.Contains(got, fmt.Sprintf("%d 1", n)) && !slices.Contains(got, last) {
				t.Errorf("subtask %d has not %q", subtask, last)
			}
		}
	}
	if total != len(records) {
		t.Errorf("%d of %d records were counted", total, len(records))
	}
}

func TestStateSurvivesARestoreAtAnotherParallelism(t *testing.T) {
	t.Parallel()
	words := strings.Fields("ant bee cat dog emu fox gnu hen ibis jay kiwi lark mole newt owl pig rat seal tit vole wren yak")
	var got []string
	job := wordCount(&got)
	task := flowtest.Open(t, job, nil, flowtest.At("count"))
	task.MustFeed(keyed(t, words...))
	snapshot := task.Snapshot(1)
	got = nil
	for subtask := range 2 {
		again := flowtest.Open(t, job, nil, flowtest.Options{Operator: "count", Parallelism: 2, Subtask: subtask, Restore: snapshot})
		again.MustFeed(keyed(t, words...))
	}
	slices.Sort(got)
	for i, w := range words {
		if want := fmt.Sprintf("%s 2 (%s)", w[:1], w); got[i] != want {
			t.Errorf("got %q, want %q", got[i], want)
		}
	}
}

func TestStateOfAnotherTypeIsNotRestored(t *testing.T) {
	t.Parallel()
	job := func(setup func(s *flow.Setup)) flow.Job {
		return define(func(g *flow.Graph) {
			k := flow.KeyBy(flow.From(g, "in", numbers(1)), "k", func(v int) int { return v })
			flow.To(flow.Process(k, "p", func(s *flow.Setup) flow.Processor[int, int, int] {
				setup(s)
				return flow.ProcessFunc[int, int, int](func(*flow.Context[int], int, *flow.Out[int]) error { return nil })
			}), "out", flow.Discard[int]())
		})
	}
	old := flowtest.Open(t, job(func(s *flow.Setup) { flow.NewValue[int64](s, "n") }), nil, flowtest.At("p"))
	task := flowtest.New(t, job(func(s *flow.Setup) { flow.NewValue[string](s, "n") }), nil, flowtest.Options{Operator: "p", Restore: old.Snapshot(1)})
	err := task.Chain.Open(task.Env)
	if err == nil || !strings.Contains(err.Error(), `state "n" was written with key int64 and value fixed 8 int64, and is now key int64 and value string`) {
		t.Errorf("got %v", err)
	}
}

// TestUserCodeMayKeepWhatItIsGiven keeps every value while the memory that values
// came from is overwritten.
func TestUserCodeMayKeepWhatItIsGiven(t *testing.T) {
	t.Parallel()
	type note struct {
		Text  string
		Parts []string
		Tags  map[string][]byte
	}
	var states []note
	var timerKeys []string
	job := define(func(g *flow.Graph) {
		in := flow.Map(flow.From(g, "in", numbers(1)), "word", func(int) string { return "" })
		k := flow.KeyBy(in, "k", func(w string) string { return w[:1] })
		flow.Process(k, "p", func(s *flow.Setup) flow.Processor[string, string, string] {
			return &keeper[note]{flow.NewValue[note](s, "note"), func(n note, w string) note {
				states = append(states, n)
				return note{w + n.Text, append(slices.Clone(n.Parts), w), map[string][]byte{w: []byte(w)}}
			}, &timerKeys}
		})
	})
	task := flowtest.Open(t, job, nil, flowtest.At("p"))
	for range 50 {
		task.MustFeed(keyed(t, "ant", "ape", "bee"))
	}
	if err := task.Advance(time.Hour); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(timerKeys, []string{"a", "b"}) {
		t.Errorf("keys of timers: %q", timerKeys)
	}
	seen := 0
	for i, n := range states {
		if i%3 == 2 { // bee
			seen++
			if want := strings.Repeat("bee", i/3); n.Text != want || strings.Join(n.Parts, "") != want || i > 2 && string(n.Tags["bee"]) != "bee" {
				t.Fatalf("state %d: %+v", i, n)
			}
		}
	}
	if seen != 50 {
		t.Errorf("%d", seen)
	}
}

type keeper[T any] struct {
	state *flow.Value[T]
	next  func(T, string) T
	keys  *[]string
}

func (k *keeper[T]) Process(c *flow.Context[string], w string, _ *flow.Out[string]) error {
	k.state.Set(k.next(k.state.Get(), w))
	c.SetTimer(time.UnixMilli(1000))
	return nil
}

func (k *keeper[T]) OnTimer(c *flow.Context[string], _ time.Time, _ *flow.Out[string]) error {
	*k.keys = append(*k.keys, c.Key())
	return nil
}

func TestStateWithoutAKeyIsAFailure(t *testing.T) {
	t.Parallel()
	job := define(func(g *flow.Graph) {
		k := flow.KeyBy(flow.From(g, "in", numbers(1)), "k", func(v int) int { return v })
		flow.Process(k, "p", func(s *flow.Setup) flow.Processor[int, int, int] {
			return opensState{flow.NewValue[int](s, "n")}
		})
	})
	task := flowtest.New(t, job, nil, flowtest.At("p"))
	var f *weir.Failure
	err := task.Chain.Open(task.Env)
	if !errors.As(err, &f) || f.Operator != "p" || !strings.Contains(f.Message, `state "n": used where there is no key`) {
		t.Errorf("got %v", err)
	}
}

type opensState struct{ n *flow.Value[int] }

func (o opensState) Open(*flow.Runtime) error { o.n.Get(); return nil }
func (o opensState) Process(c *flow.Context[int], _ int, _ *flow.Out[int]) error {
	c.SetTimer(time.UnixMilli(1))
	return nil
}

func TestTimerWithoutOnTimerIsAFailure(t *testing.T) {
	t.Parallel()
	job := define(func(g *flow.Graph) {
		k := flow.KeyBy(flow.Map(flow.From(g, "in", numbers(1)), "w", func(int) string { return "" }), "k", func(v string) string { return v[:1] })
		flow.Process(k, "p", func(*flow.Setup) flow.Processor[string, string, int] {
			return flow.ProcessFunc[string, string, int](func(c *flow.Context[string], _ string, _ *flow.Out[int]) error {
				c.SetTimer(c.Now())
				return nil
			})
		})
	})
	err := flowtest.Open(t, job, nil, flowtest.At("p")).Feed(keyed(t, "ant"))
	if err == nil || !strings.Contains(err.Error(), "no method OnTimer") {
		t.Errorf("got %v", err)
	}
}

func TestLongKeysAreRefusedWhereTheyAreMade(t *testing.T) {
	t.Parallel()
	job := define(func(g *flow.Graph) {
		k := flow.KeyBy(flow.From(g, "in", numbers(1)), "k", func(v int) string { return strings.Repeat("x", 1<<15) })
		flow.Process(k, "p", func(*flow.Setup) flow.Processor[string, int, int] {
			return flow.ProcessFunc[string, int, int](func(*flow.Context[string], int, *flow.Out[int]) error { return nil })
		})
	})
	_, err := flowtest.Open(t, job, nil, flowtest.At("in")).Chain.Poll(1)
	if err == nil || !strings.Contains(err.Error(), `key "k": encoded in 32771 bytes; a key has at most 32767`) {
		t.Errorf("got %v", err)
	}
}

// memoryValue lies in a table as in memory, mixedValue does not.
type memoryValue struct {
	N     int64
	Small [2]int32
}

func (v *memoryValue) next(n int64) memoryValue {
	v.N += n
	v.Small[1]++
	return *v
}

type mixedValue struct {
	Flag  bool
	N     int64
	Small int16
}

func (v *mixedValue) next(n int64) mixedValue {
	v.Flag, v.N, v.Small = !v.Flag, v.N+n, v.Small+1
	return *v
}

// TestStateIsAMap compares values of all forms with Go maps, over suspensions.
func TestStateIsAMap(t *testing.T) {
	t.Parallel()
	type command struct {
		Key string
		Op  uint8
		N   int64
	}
	rapid.Check(t, func(rt *rapid.T) {
		fixed, varying := make(map[string]int64), make(map[string]string)
		pairs, mixed := make(map[string]memoryValue), make(map[string]mixedValue)
		var task *flowtest.Task
		job := define(func(g *flow.Graph) {
			in := flow.Map(flow.From(g, "in", numbers(1)), "commands", func(int) command { return command{} })
			k := flow.KeyBy(in, "k", func(c command) string { return c.Key })
			flow.Process(k, "p", func(s *flow.Setup) flow.Processor[string, command, int] {
				f, v := flow.NewValue[int64](s, "f"), flow.NewValue[string](s, "v")
				p, m := flow.NewValue[memoryValue](s, "p"), flow.NewValue[mixedValue](s, "m")
				return flow.ProcessFunc[string, command, int](func(ctx *flow.Context[string], c command, _ *flow.Out[int]) error {
					text := strings.Repeat("x", int(c.N))
					switch c.Op {
					case 0:
						f.Set(c.N)
						v.Set(text)
						p.Set(memoryValue{c.N, [2]int32{1, 2}})
						m.Set(mixedValue{N: c.N})
						pairs[c.Key], mixed[c.Key] = memoryValue{c.N, [2]int32{1, 2}}, mixedValue{N: c.N}
						fixed[c.Key], varying[c.Key] = c.N, text
					case 1:
						f.Clear()
						v.Clear()
						p.Clear()
						m.Clear()
						delete(pairs, c.Key)
						delete(mixed, c.Key)
						delete(fixed, c.Key)
						delete(varying, c.Key)
					case 2:
						f.Update(func(n *int64) { *n += c.N })
						v.Update(func(s *string) { *s += text })
						p.Update(func(p *memoryValue) { pairs[c.Key] = p.next(c.N) })
						m.Update(func(m *mixedValue) { mixed[c.Key] = m.next(c.N) })
						fixed[c.Key] += c.N
						varying[c.Key] += text
					case 3:
						task.Suspend.Store(true)
					}
					if p.Get() != pairs[c.Key] || m.Get() != mixed[c.Key] {
						return fmt.Errorf("key %q: %v %v, want %v %v", c.Key, p.Get(), m.Get(), pairs[c.Key], mixed[c.Key])
					}
					n, ok := f.Lookup()
					want, has := fixed[c.Key]
					if n != want || ok != has || v.Get() != varying[c.Key] {
						return fmt.Errorf("key %q: %d %v, want %d %v", c.Key, n, ok, want, has)
					}
					return nil
				})
			})
		})
		task = flowtest.Open(t, job, nil, flowtest.At("p"))
		keys, err := codec.ForKey[string]()
		if err != nil {
			rt.Fatal(err)
		}
		commands, err := codec.For[command]()
		if err != nil {
			rt.Fatal(err)
		}
		for range rapid.IntRange(1, 4).Draw(rt, "batches") {
			b := &operator.Batch{N: rapid.IntRange(1, operator.BatchSize).Draw(rt, "n")}
			for i := range b.N {
				c := command{rapid.SampledFrom([]string{"a", "b", "c", "dd"}).Draw(rt, "key"),
					rapid.Uint8Range(0, 3).Draw(rt, "op"), rapid.Int64Range(0, 300).Draw(rt, "value")}
				key, _ := keys.Append(nil, &c.Key)
				b.Hash[i] = codec.Hash(key)
				b.Payload[i], _ = commands.Append(nil, &c)
			}
			for b.Next < b.N {
				task.Suspend.Store(false)
				if err := task.Chain.Process(b); err != nil {
					rt.Fatal(err)
				}
			}
		}
	})
}

func TestRecordsOfAKeyedOperatorNeedNoAllocation(t *testing.T) {
	job := define(func(g *flow.Graph) {
		in := flow.Map(flow.From(g, "in", numbers(1<<40)), "word", func(v int) string { return [4]string{"ant", "bee", "cat", "dog"}[v%4] })
		k := flow.KeyBy(in, "k", func(w string) string { return w[:1] })
		counts := flow.Process(k, "count", func(s *flow.Setup) flow.Processor[string, string, wordTotal] {
			n := flow.NewValue[int64](s, "n")
			return flow.ProcessFunc[string, string, wordTotal](func(c *flow.Context[string], w string, out *flow.Out[wordTotal]) error {
				var now int64
				n.Update(func(n *int64) { *n++; now = *n })
				n.Set(n.Get())
				out.Emit(wordTotal{Word: c.Key(), Last: w, N: now})
				return nil
			})
		})
		flow.To(counts, "out", flow.Discard[wordTotal](), flow.StartNewChain())
	})
	source := flowtest.Open(t, job, nil, flowtest.At("in"))
	source.Outputs[0].CountOnly = true
	if n := testing.AllocsPerRun(10, func() { source.Poll(1000) }); n != 0 {
		t.Errorf("producer: %v allocations in 1000 records", n)
	}
	source.Outputs[0].CountOnly = false
	source.Poll(operator.BatchSize)
	records := source.Emitted()
	task := flowtest.Open(t, job, nil, flowtest.At("count"))
	task.Outputs[0].CountOnly = true
	if n := testing.AllocsPerRun(10, func() { task.MustFeed(records) }); n != 0 {
		t.Errorf("consumer: %v allocations in a batch", n)
	}
}
