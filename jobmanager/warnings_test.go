package jobmanager

import (
	"strings"
	"testing"

	"github.com/weirflow/weir/jobgraph"
)

func TestOperatorsThatNobodyReadsAreWarnedOf(t *testing.T) {
	t.Parallel()
	op := func(name string, kind jobgraph.Kind, inputs ...jobgraph.Input) jobgraph.Operator {
		return jobgraph.Operator{Name: name, Kind: kind, Inputs: inputs}
	}
	from := func(name, side string) jobgraph.Input { return jobgraph.Input{From: name, Side: side} }
	g := &jobgraph.Logical{Operators: []jobgraph.Operator{
		op("alone", jobgraph.KindSource), op("in", jobgraph.KindSource), op("forgotten", jobgraph.KindMap, from("in", "")),
		op("side only", jobgraph.KindProcess, from("in", "")), op("out", jobgraph.KindSink, from("side only", "late")),
	}}
	got := unread(g)
	if len(got) != 2 || !strings.Contains(got[0], `"alone"`) || !strings.Contains(got[1], `"forgotten"`) {
		t.Errorf("got %q", got)
	}
}
