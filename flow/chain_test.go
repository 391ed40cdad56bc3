package flow_test

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/flow/flowtest"
	"github.com/weirflow/weir/internal/assert"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/operator"
)

func define(build func(g *flow.Graph)) flow.Job {
	return flow.Define("test", func(g *flow.Graph, _ struct{}) error { build(g); return nil })
}

func repeat(v int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for range v {
			if !yield(fmt.Sprint(v)) {
				return
			}
		}
	}
}

func TestChainRunsEveryKindOfOperator(t *testing.T) {
	t.Parallel()
	var got []string
	task := flowtest.Open(t, define(func(g *flow.Graph) {
		in := flow.From(g, "in", numbers(6))
		odd := flow.Filter(in, "odd", func(v int) bool { return v%2 == 1 })
		less := flow.Map(odd, "less", func(v int) int { return v - 2 })
		words := flow.FlatMap(less, "repeat", repeat)
		twice := flow.FlatMapFunc(words, "twice", func(v string, out *flow.Out[string]) error {
			out.Emit(v)
			out.EmitAt(1, v+"!")
			return nil
		})
		flow.To(twice, "out", collect[string]{got: &got})
	}), nil, flowtest.Options{})
	if s := task.Poll(100); s != operator.SourceEnd {
		t.Errorf("status %d", s)
	}
	if want := []string{"1", "1!", "3", "3!", "3", "3!", "3", "3!"}; !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	want := []operator.Counts{
		{Operator: "in", RecordsOut: 6}, {Operator: "odd", RecordsIn: 6, RecordsOut: 3}, {Operator: "less", RecordsIn: 3, RecordsOut: 3},
		{Operator: "repeat", RecordsIn: 3, RecordsOut: 4}, {Operator: "twice", RecordsIn: 4, RecordsOut: 8}, {Operator: "out", RecordsIn: 8},
	}
	if counts := task.Chain.Counts(); !slices.Equal(counts, want) {
		t.Errorf("counts %v", counts)
	}
}

func TestStreamUsedTwiceGoesToEveryConsumer(t *testing.T) {
	t.Parallel()
	var a, b []int
	job := define(func(g *flow.Graph) {
		in := flow.From(g, "in", numbers(3))
		flow.To(in, "a", collect[int]{got: &a})
		flow.To(flow.Map(in, "double", func(v int) int { return 2 * v }), "b", collect[int]{got: &b})
		flow.To(in, "c", flow.Discard[int](), flow.StartNewChain())
		flow.To(in, "d", flow.Discard[int](), flow.Parallelism(3))
	})
	task := flowtest.Open(t, job, nil, flowtest.Options{})
	task.Poll(100)
	if !slices.Equal(a, []int{0, 1, 2}) || !slices.Equal(b, []int{0, 2, 4}) {
		t.Errorf("a %v, b %v", a, b)
	}
	if len(task.Outputs) != 2 || task.Outputs[0].Edge.Partitioning != jobgraph.Forward || task.Outputs[1].Edge.Partitioning != jobgraph.Rebalance {
		t.Fatalf("outputs %+v", task.Outputs)
	}
	for _, o := range task.Outputs {
		if r := o.Take(); len(r) != 3 || r[2].Timestamp != 2 || string(r[2].Payload) != "\x04" {
			t.Errorf("%s: %v", o.Edge.ToOperator, r)
		}
	}
	if err := task.Chain.Watermark(7); err != nil || !slices.Equal(task.Outputs[1].Watermarks, []weir.Watermark{7}) {
		t.Errorf("watermark: %v, %v", err, task.Outputs[1].Watermarks)
	}
	if err := task.Chain.Status(true); err != nil || !task.Outputs[0].Idle {
		t.Errorf("status: %v", err)
	}
}

func TestBatchIsSuspendedAfterAnyRecordAndResumed(t *testing.T) {
	t.Parallel()
	for stop := 1; stop <= 5; stop++ {
		var got []int
		var task *flowtest.Task
		job := define(func(g *flow.Graph) {
			in := flow.From(g, "in", numbers(0))
			flow.To(flow.Map(in, "map", func(v int) int {
				if v == stop {
					task.Suspend.Store(true)
				}
				return v
			}, flow.StartNewChain()), "out", collect[int]{got: &got})
		})
		task = flowtest.Open(t, job, nil, flowtest.At("map"))
		b := &operator.Batch{N: 5}
		for i := range 5 {
			b.Payload[i] = []byte{byte(2 * (i + 1))}
		}
		if err := task.Chain.Process(b); err != nil || b.Next != stop || len(got) != stop {
			t.Fatalf("suspended at %d: %v, next %d, got %v", stop, err, b.Next, got)
		}
		task.Suspend.Store(false)
		if err := task.Chain.Process(b); err != nil || b.Next != 5 || !slices.Equal(got, []int{1, 2, 3, 4, 5}) {
			t.Errorf("resumed: %v, next %d, got %v", err, b.Next, got)
		}
	}
}

func TestSourceStopsAtTheLimitAndWhenSuspended(t *testing.T) {
	t.Parallel()
	var got []int
	task := flowtest.Open(t, define(func(g *flow.Graph) {
		flow.To(flow.From(g, "in", numbers(10)), "out", collect[int]{got: &got})
	}), nil, flowtest.Options{})
	if s := task.Poll(4); s != operator.SourceMore || len(got) != 4 {
		t.Errorf("status %d, got %v", s, got)
	}
	task.Suspend.Store(true)
	if s := task.Poll(4); s != operator.SourceMore || len(got) != 5 {
		t.Errorf("status %d, got %v", s, got)
	}
}

func TestLifeOfAChain(t *testing.T) {
	t.Parallel()
	var journal []string
	var got []int
	job := define(func(g *flow.Graph) {
		in := flow.From(g, "in", &numberSource{limit: 9, journal: &journal})
		m := flow.MapWith(in, "map", &listener{journal: &journal})
		flow.To(m, "out", collect[int]{&got, &journal})
	})
	task := flowtest.New(t, job, nil, flowtest.Options{})
	check := func(step string, want ...string) {
		t.Helper()
		if !slices.Equal(journal, want) {
			t.Errorf("%s: %q, want %q", step, journal, want)
		}
		journal = nil
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	if c := task.Chain.Counts(); len(c) != 3 {
		t.Errorf("counts before opening: %v", c)
	}
	must(task.Chain.Open(task.Env))
	check("open", "open sink", "open map", "open source 0/1 of test", "add 1")
	task.Poll(4)
	snapshot := task.Snapshot(3)
	check("snapshot", "flush", "snapshot")
	must(task.Chain.NotifyComplete(3))
	must(task.Chain.NotifyAborted(4))
	must(task.Chain.HandleEvent(weir.OperatorIDOf("in"), []byte("hi")))
	check("notify", "complete 3", "aborted 4", "event hi")
	if err := task.Chain.HandleEvent(weir.OperatorIDOf("map"), nil); err == nil {
		t.Error("event for a map")
	}
	must(task.Chain.EndOfInput(0))
	must(task.Chain.Finish())
	check("finish", "flush")
	must(task.Chain.Close())
	must(task.Chain.Close())
	check("close", "close source", "close map", "close sink")

	got = nil
	again := flowtest.Open(t, job, nil, flowtest.Options{Restore: snapshot})
	check("restored", "open sink", "restore [4]", "open map", "open source 0/1 of test", "add 1")
	if again.Poll(100); !slices.Equal(got, []int{4, 5, 6, 7, 8}) {
		t.Errorf("after the restore: %v", got)
	}
}

func TestFailuresNameTheOperatorThatRan(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	pass := func(v int) int { return v }
	for name, tt := range map[string]struct {
		build    func(in flow.Stream[int])
		operator string
		fault    weir.Fault
		message  string
		stack    string
	}{
		"panic in a map": {func(in flow.Stream[int]) {
			flow.Map(flow.Map(in, "a", pass), "b", func(v int) int { return 1 / v })
		}, "b", weir.FaultUser, "panic: runtime error: integer divide by zero", "TestFailuresNameTheOperatorThatRan"},
		"panic after a consumer ran": {func(in flow.Stream[int]) {
			m := flow.FlatMapFunc(in, "a", func(v int, out *flow.Out[int]) error { out.Emit(v); panic(boom) })
			flow.Map(m, "b", pass)
		}, "a", weir.FaultUser, "panic: boom", "TestFailuresNameTheOperatorThatRan"},
		"panic of a key": {func(in flow.Stream[int]) {
			flow.Process(flow.KeyBy(flow.Map(in, "a", pass), "k", func(v int) int { panic(boom) }), "p", func(*flow.Setup) flow.Processor[int, int, int] {
				return flow.ProcessFunc[int, int, int](func(*flow.Context[int], int, *flow.Out[int]) error { return nil })
			})
		}, "a", weir.FaultUser, `key "k": panic: boom`, "TestFailuresNameTheOperatorThatRan"},
		"broken assertion": {func(in flow.Stream[int]) {
			flow.Map(in, "a", func(v int) int { assert.That(false, "pool"); return v })
		}, "a", weir.FaultSystem, "panic: assertion failed: pool", "TestFailuresNameTheOperatorThatRan"},
		"error of a flat map": {func(in flow.Stream[int]) {
			m := flow.FlatMapFunc(in, "a", func(v int, out *flow.Out[int]) error { return boom })
			flow.Map(m, "b", pass)
		}, "a", weir.FaultUser, "boom", "error returned by github.com/weirflow/weir/flow_test.TestFailuresNameTheOperatorThatRan"},
		"error of a map": {func(in flow.Stream[int]) {
			flow.MapWith(in, "a", &listener{journal: new([]string), fail: boom})
		}, "a", weir.FaultUser, "boom", "error returned by a method of *flow_test.listener"},
		"error of a sink": {func(in flow.Stream[int]) {
			flow.To(in, "a", flow.SinkFunc[int](func(int64, int) error { return boom }))
		}, "a", weir.FaultOutside, "boom", "error returned by github.com/weirflow/weir/flow_test.TestFailuresNameTheOperatorThatRan"},
		"an error that is a failure": {func(in flow.Stream[int]) {
			flow.To(in, "a", flow.SinkFunc[int](func(int64, int) error {
				return fmt.Errorf("sink: %w", &weir.Failure{Message: "no such table", Fault: weir.FaultUser, NoRetry: true})
			}))
		}, "a", weir.FaultUser, "no such table", "error returned by github.com/weirflow/weir/flow_test.TestFailuresNameTheOperatorThatRan"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task := flowtest.Open(t, define(func(g *flow.Graph) { tt.build(flow.From(g, "in", numbers(3))) }), nil, flowtest.Options{})
			_, err := task.Chain.Poll(1)
			var f *weir.Failure
			if !errors.As(err, &f) || f.Operator != tt.operator || f.Fault != tt.fault || f.Message != tt.message {
				t.Fatalf("got %+v", err)
			}
			if tt.stack == "" && f.Stack != "" || !strings.Contains(strings.SplitN(f.Stack+"\n", "\n", 2)[0], tt.stack) {
				if tt.fault != weir.FaultSystem || !strings.Contains(f.Stack, tt.stack) {
					t.Errorf("stack:\n%s", f.Stack)
				}
			}
			if strings.Contains(f.Stack, "flow.(*chain)") || strings.Contains(f.Stack, "debug.Stack") {
				t.Errorf("stack has our frames:\n%s", f.Stack)
			}
			if strings.Contains(tt.message, "boom") && !errors.Is(err, boom) {
				t.Error("the cause is lost")
			}
			if _, again := task.Chain.Poll(1); again == nil {
				t.Error("the chain goes on")
			}
		})
	}
}

func TestFailingOpenClosesWhatWasOpened(t *testing.T) {
	t.Parallel()
	var journal []string
	task := flowtest.New(t, define(func(g *flow.Graph) {
		in := flow.From(g, "in", &numberSource{limit: 9, journal: &journal})
		m := flow.MapWith[int, int](in, "bad", failsToOpen{})
		flow.To(m, "out", collect[int]{new([]int), &journal})
	}), nil, flowtest.Options{})
	err := task.Chain.Open(task.Env)
	var f *weir.Failure
	if !errors.As(err, &f) || f.Operator != "bad" || f.Message != "open: no licence" {
		t.Errorf("got %v", err)
	}
	if err := task.Chain.Close(); err != nil || !slices.Equal(journal, []string{"open sink", "close sink"}) {
		t.Errorf("%v, %q", err, journal)
	}
}

type failsToOpen struct{}

func (failsToOpen) Open(*flow.Runtime) error { return errors.New("no licence") }
func (failsToOpen) Map(v int) (int, error)   { return v, nil }

func TestChainBorrowsOnlyIfAllItsOperatorsDo(t *testing.T) {
	t.Parallel()
	job := define(func(g *flow.Graph) {
		in := flow.From(g, "in", numbers(1))
		a := flow.Map(in, "a", func(v int) int { return v }, flow.Borrow(), flow.StartNewChain())
		flow.To(a, "drop", flow.Discard[int]())
		b := flow.Map(in, "b", func(v int) int { return v }, flow.Borrow(), flow.StartNewChain())
		flow.To(b, "keep", collect[int]{got: new([]int)})
	})
	for name, want := range map[string]bool{"in": false, "a": true, "b": false} {
		if got := flowtest.New(t, job, nil, flowtest.At(name)).Chain.Borrows(); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestBuildServesOneAttempt(t *testing.T) {
	t.Parallel()
	p, err := simpleJob("a").Build(nil)
	if err != nil {
		t.Fatal(err)
	}
	g, err := jobgraph.Compile(p.Logical(), jobgraph.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.NewChain(&g.Vertices[0], g); err != nil {
		t.Fatal(err)
	}
	if _, err := p.NewChain(&g.Vertices[0], g); err == nil {
		t.Error("a second chain shares the first one's operators")
	}
	if _, err := p.NewEnumerator("in"); err != nil {
		t.Error(err)
	}
	if _, err := p.NewEnumerator("out"); err == nil {
		t.Error("a sink has an enumerator")
	}
	if _, err := p.NewChain(&jobgraph.Vertex{Operators: []string{"x"}}, g); err == nil {
		t.Error("unknown operator")
	}
}

func TestCorruptPayloadFailsTheTask(t *testing.T) {
	t.Parallel()
	task := flowtest.Open(t, define(func(g *flow.Graph) {
		flow.To(flow.From(g, "in", numbers(1)), "out", flow.Discard[int](), flow.StartNewChain())
	}), nil, flowtest.At("out"))
	err := task.Feed([]flowtest.Record{{Payload: []byte{0xff}}})
	var f *weir.Failure
	if !errors.As(err, &f) || f.Fault != weir.FaultSystem || f.Operator != "out" {
		t.Errorf("got %v", err)
	}
}

func TestRecordsOfAChainNeedNoAllocation(t *testing.T) {
	type event struct {
		Number int64
		Name   string
	}
	job := define(func(g *flow.Graph) {
		in := flow.From(g, "in", numbers(1<<40))
		e := flow.Map(in, "event", func(v int) event { return event{int64(v), "name"} })
		f := flow.Filter(e, "filter", func(e event) bool { return e.Number%8 != 7 })
		d := flow.FlatMapFunc(f, "twice", func(e event, out *flow.Out[event]) error { out.Emit(e); out.Emit(e); return nil })
		flow.To(d, "drop", flow.Discard[event]())
		flow.To(d, "far", flow.Discard[event](), flow.StartNewChain())
	})
	task := flowtest.Open(t, job, nil, flowtest.Options{})
	task.Outputs[0].CountOnly = true
	if n := testing.AllocsPerRun(10, func() { task.Poll(1000) }); n != 0 {
		t.Errorf("source to output: %v allocations in 1000 records", n)
	}
	far := flowtest.Open(t, job, nil, flowtest.At("far"))
	b := &operator.Batch{N: operator.BatchSize}
	for i := range b.N {
		b.Payload[i] = []byte("\x10\x04name")
	}
	if n := testing.AllocsPerRun(10, func() {
		if b.Next = 0; far.Chain.Process(b) != nil {
			t.Fatal("failed")
		}
	}); n != 0 {
		t.Errorf("input to sink: %v allocations", n)
	}
}
