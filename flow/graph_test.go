package flow_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/weirflow/weir/flow"
)

func TestAllFaultsOfAGraphAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	job := flow.Define("faulty", func(g *flow.Graph, _ struct{}) error {
		in := flow.From(g, "in", numbers(1), flow.Parallelism(0))
		chans := flow.Map(in, "chans", func(int) chan int { return nil })
		flow.To(chans, "out", flow.Discard[chan int]())
		flow.To(in, "out", flow.Discard[int]())
		flow.Filter(in, "", func(int) bool { return true })
		flow.Map[int, int](in, "nothing", nil)
		keyed := flow.KeyBy(in, "by-any", func(v int) any { return v })
		flow.Process(keyed, "count", func(s *flow.Setup) flow.Processor[any, int, int] {
			flow.NewValue[func()](s, "f")
			flow.NewValue[int](s, "weir/x")
			return nil
		}, flow.MaxParallelism(-1))
		return errors.New("and the builder's own")
	})
	_, err := job.Build(nil)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`job "faulty": `,
		`operator "in": parallelism 0 is less than 1`,
		`operator "out": input records: unsupported type: chan int: chan int`,
		`operator "out": name used twice`,
		`a filter needs a name`,
		`operator "nothing": its function is nil`,
		`key "by-any": unsupported type: interface {}`,
		`operator "count": its function is nil`,
		`operator "count": state "f": unsupported type: func()`,
		`operator "count": state "weir/x": names that begin with weir/ are reserved`,
		`operator "count": maximum parallelism -1 is less than 1`,
		`and the builder's own`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %s in:\n%v", want, err)
		}
	}
}

func TestJobWithoutOperatorsIsRefused(t *testing.T) {
	t.Parallel()
	_, err := flow.Define("empty", func(*flow.Graph, struct{}) error { return nil }).Build(nil)
	if err == nil || !strings.Contains(err.Error(), "no operators") {
		t.Errorf("got %v", err)
	}
	_, err = flow.Define("early", func(*flow.Graph, struct{}) error { return errors.New("no such file") }).Build(nil)
	if err == nil || err.Error() != `job "early": no such file` {
		t.Errorf("got %v", err)
	}
}

// TestGraphTextGolden pins what the graph's hash covers.
func TestGraphTextGolden(t *testing.T) {
	t.Parallel()
	var got []string
	var late []measured
	for file, job := range map[string]flow.Job{"word_count": wordCount(&got), "limits": limitsJob(&got, &late)} {
		p, err := job.Build(nil)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile("testdata/" + file + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		if text := p.Logical().Text(); text != string(want) {
			t.Errorf("%s: text changed:\n%s", file, text)
		}
	}
}
