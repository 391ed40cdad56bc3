package randomjob

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/codec"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/flow/flowtest"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/statebackend"
)

// counted is what the tasks of a job have counted.
func counted(t *testing.T, n *flowtest.Network, plan Plan) Answer {
	t.Helper()
	keys, err := codec.ForKey[int64]()
	if err != nil {
		t.Fatal(err)
	}
	values, err := codec.For[Tally]()
	if err != nil {
		t.Fatal(err)
	}
	schema := weir.StateSchema{State: TallyState, Key: keys.Schema(), Value: values.FixedSchema()}
	answer := make(Answer)
	for _, node := range plan.Nodes {
		tallies := make(map[int64]Tally)
		for _, task := range tasksOf(n, node.Name) {
			if node.Kind.Keyed() {
				for k, v := range task.States(node.Name, TallyState, statebackend.Descriptor{FixedSize: values.FixedSize(), Schema: schema}) {
					var key int64
					var tally Tally
					if err := keys.Decode([]byte(k), &key); err != nil {
						t.Fatal(err)
					}
					if err := values.GetFixed([]byte(v), &tally); err != nil {
						t.Fatal(err)
					}
					tallies[key] = tally
				}
			}
			if node.Kind == Alone {
				for _, e := range task.Snapshot(1).Operators[weir.OperatorIDOf(node.Name)] {
					tally, err := parseTally(e)
					if err != nil {
						t.Fatal(err)
					}
					sum := tallies[0]
					sum.merge(tally)
					tallies[0] = sum
				}
			}
		}
		if len(tallies) > 0 {
			answer[node.Name] = tallies
		}
	}
	return answer
}

func tasksOf(n *flowtest.Network, operator string) []*flowtest.Task {
	for v := range n.Graph.Vertices {
		for _, name := range n.Graph.Vertices[v].Operators {
			if name == operator {
				return n.Tasks[v]
			}
		}
	}
	return nil
}

func TestEverySeedGivesItsAnswer(t *testing.T) {
	t.Parallel()
	edges, kinds, vertices := make(map[jobgraph.Partitioning]int), make(map[Kind]int), make(map[int]int)
	sides, unions := 0, 0
	for seed := range uint64(150) {
		p := Params{Seed: seed, Widths: seed + 1, Once: seed%2 == 0, Records: 60, Keys: 1 + int64(seed%9), Size: 40}
		if seed%10 == 0 {
			p.Large = 40_000
		}
		n := flowtest.OpenAll(t, Job, p.Map(), flowtest.Options{})
		n.Run()
		plan := p.Plan()
		if diff := Diff(counted(t, n, plan), Expected(p)); diff != "" {
			t.Fatalf("seed %d: %s\n%v", seed, diff, plan.Nodes)
		}
		for _, e := range n.Graph.Edges {
			edges[e.Partitioning]++
			if e.Side != "" {
				sides++
			}
		}
		for _, node := range plan.Nodes {
			kinds[node.Kind]++
			for _, port := range node.Ports {
				if len(port) > 1 {
					unions++
				}
			}
		}
		vertices[len(n.Graph.Vertices)]++
	}
	t.Logf("edges %v, side outputs %d, unions %d, kinds %v, vertices %v", edges, sides, unions, kinds, vertices)
	if len(edges) != 6 || len(kinds) != 10 || len(vertices) != maxVertices || vertices[maxVertices] == 0 || sides == 0 || unions == 0 {
		t.Errorf("not everything occurred")
	}
}

// TestAnswerIsThatOfEveryParallelism takes a snapshot halfway and goes on at other
// widths.
func TestAnswerIsThatOfEveryParallelism(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		p := Params{Seed: seed, Widths: 1, Once: true, Records: 80, Keys: 5, Size: 20}
		first := flowtest.OpenAll(t, Job, p.Map(), flowtest.Options{})
		first.Step(1 + int(seed%15))
		snapshot := first.Snapshot(1)
		p.Widths = 2 + seed
		again := flowtest.OpenAll(t, Job, p.Map(), flowtest.Options{Restore: snapshot})
		again.Run()
		if diff := Diff(counted(t, again, p.Plan()), Expected(p)); diff != "" {
			t.Fatalf("seed %d: %s\n%v", seed, diff, p.Plan().Nodes)
		}
		q := p
		q.Widths = 77
		if diff := Diff(Expected(q), Expected(p)); diff != "" {
			t.Errorf("seed %d: the answer depends on the parallelism: %s", seed, diff)
		}
	}
}

func TestGraphDependsOnTheSeedAlone(t *testing.T) {
	t.Parallel()
	text := func(p Params) string {
		program, err := Job.Build(p.Map())
		if err != nil {
			t.Fatal(err)
		}
		return program.Logical().Text()
	}
	base := Params{Seed: 3, Widths: 1, Records: 10, Keys: 2}
	other := Params{Seed: 3, Widths: 9, Records: 99, Keys: 4, Size: 5, Rate: 7}
	if d := jobgraph.Diff(text(base), text(other)); d != "" {
		t.Error(d)
	}
	for seed := range uint64(20) {
		flow.Check(t, Job, map[string]string{"seed": fmt.Sprint(seed)})
	}
}

func TestDiffSeesLostDoubledAndExchangedRecords(t *testing.T) {
	t.Parallel()
	want := Answer{"count": {1: {10, 55}, 2: {3, 4}}}
	for name, got := range map[string]Answer{
		"lost":      {"count": {1: {9, 50}, 2: {3, 4}}},
		"exchanged": {"count": {1: {10, 56}, 2: {3, 4}}},
		"all":       {},
		"too many":  {"count": {1: {10, 55}, 2: {3, 4}, 3: {1, 1}}},
		"elsewhere": {"count": {1: {10, 55}, 2: {3, 4}}, "node-1": {0: {1, 1}}},
	} {
		if Diff(got, want) == "" {
			t.Errorf("%s: no difference", name)
		}
	}
	if d := Diff(want, want); d != "" {
		t.Error(d)
	}
}

func TestDamagedRecordsFailTheJobForGood(t *testing.T) {
	t.Parallel()
	p := Params{Keys: 5, Size: 30}
	good := p.newRecord(0, 1)
	if err := p.check(good); err != nil {
		t.Fatal(err)
	}
	for i, bad := range []Record{
		{ID: good.ID, Key: good.Key + 1, Hops: good.Hops, Pad: good.Pad},
		{ID: good.ID, Key: good.Key, Hops: good.Hops, Pad: append([]byte{1}, good.Pad...)},
		{ID: good.ID, Key: good.Key, Hops: good.Hops, Pad: good.Pad, Copy: true},
	} {
		if err := p.check(bad); err == nil || !strings.Contains(err.Error(), "is damaged") {
			t.Errorf("%d: %v", i, err)
		}
	}
}
