package main

import (
	"testing"

	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/minicluster"
)

func TestWordsAreCountedInACluster(t *testing.T) {
	var out minicluster.Collector[Count]
	job := flow.Define("word-count", func(g *flow.Graph, p Params) error { return wordCount(g, p, out.Sink()) })
	minicluster.Run(t, job, minicluster.JobOptions{Params: map[string]string{"lines": "30", "rate": "0"}, Parallelism: 2})
	counts := make(map[string]int64)
	for _, c := range out.Values() {
		counts[c.Word] = max(counts[c.Word], c.N)
	}
	for word, want := range map[string]int64{"the": 40, "river": 30, "and": 20, "wall": 10, "over": 10} {
		if counts[word] != want {
			t.Errorf("%s: %d, want %d", word, counts[word], want)
		}
	}
}
