package main

import (
	"testing"

	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/flow/flowtest"
	"github.com/weirflow/weir/operator"
)

func TestBuilderIsDeterministic(t *testing.T) {
	flow.Check(t, WordCount, nil)
}

func TestWordsAreCounted(t *testing.T) {
	counts := make(map[string]int64)
	job := flow.Define("word-count", func(g *flow.Graph, p Params) error {
		return wordCount(g, p, flow.SinkFunc[Count](func(_ int64, c Count) error {
			counts[c.Word] = c.N
			return nil
		}))
	})
	params := map[string]string{"lines": "30", "rate": "0"}
	source := flowtest.Open(t, job, params, flowtest.At("lines"))
	for source.Poll(64) != operator.SourceEnd {
	}
	flowtest.Open(t, job, params, flowtest.At("count")).MustFeed(source.Emitted())
	for word, want := range map[string]int64{"the": 40, "river": 30, "and": 20, "wall": 10, "over": 10} {
		if counts[word] != want {
			t.Errorf("%s: %d, want %d", word, counts[word], want)
		}
	}
}
