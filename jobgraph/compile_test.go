package jobgraph

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/weirflow/weir"
)

// TestCompile runs the scripts. An operator is a line: kind, name, and arguments
// from=, key=, dealt=, port=, side=, by= (of the input before), p=, max=, state=, out=
// (a side output), chain=start|never; several inputs are several from=.
func TestCompile(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			l, o := parseScript(t, d)
			switch d.Cmd {
			case "text":
				return l.Text() + l.Digest().String() + "\n"
			case "compile":
				g, err := Compile(l, o)
				if err != nil {
					return err.Error() + "\n"
				}
				return describe(g)
			}
			t.Fatalf("unknown command %s", d.Cmd)
			return ""
		})
	})
}

func parseScript(t *testing.T, d *datadriven.TestData) (*Logical, Options) {
	l, o := &Logical{Entrypoint: "job"}, Options{}
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "name":
			o.Name = a.Vals[0]
		case "entrypoint":
			l.Entrypoint = strings.Join(a.Vals, "")
		case "p":
			o.Parallelism = number(a.Vals[0])
		case "max":
			o.MaxParallelism = number(a.Vals[0])
		case "no-chaining":
			o.DisableChaining = true
		}
	}
	for line := range strings.Lines(d.Input) {
		words := strings.Fields(line)
		op := Operator{Kind: Kind(words[0]), Name: words[1], In: "T", Out: "T"}
		if op.Name == "-" {
			op.Name = ""
		}
		for _, w := range words[2:] {
			key, value, _ := strings.Cut(w, "=")
			switch key {
			case "from":
				op.Inputs = append(op.Inputs, Input{From: value, Codec: "int64"})
			case "key":
				in := &op.Inputs[len(op.Inputs)-1]
				in.Partitioning, in.Key = Hash, value
			case "dealt":
				in := &op.Inputs[len(op.Inputs)-1]
				for in.Partitioning.String() != value {
					in.Partitioning++
				}
			case "port":
				op.Inputs[len(op.Inputs)-1].Port = number(value)
			case "side":
				op.Inputs[len(op.Inputs)-1].Side = value
			case "by":
				op.Inputs[len(op.Inputs)-1].Partitioner = value
			case "out":
				op.Sides = append(op.Sides, SideOutput{Name: value, Out: "S"})
			case "p":
				op.Parallelism = number(value)
			case "max":
				op.MaxParallelism = number(value)
			case "state":
				op.States = append(op.States, State{Name: value, Kind: "value", Key: "string", Value: "int64"})
			case "chain":
				op.Chaining = map[string]Chaining{"start": ChainStart, "never": ChainNever}[value]
			default:
				t.Fatalf("unknown argument %s", w)
			}
		}
		l.Operators = append(l.Operators, op)
	}
	return l, o
}

func describe(g *JobGraph) string {
	var b strings.Builder
	fmt.Fprintf(&b, "job %q\n", g.Name)
	for _, v := range g.Vertices {
		fmt.Fprintf(&b, "vertex %d %q p=%d max=%d", v.Index, v.Name, v.Parallelism, v.MaxParallelism)
		if v.MaxConfigured {
			b.WriteString(" configured")
		}
		if v.Source {
			b.WriteString(" source")
		}
		if v.Keyed {
			b.WriteString(" keyed")
		}
		fmt.Fprintf(&b, " in=%v out=%v\n", v.Inputs, v.Outputs)
	}
	for _, e := range g.Edges {
		fmt.Fprintf(&b, "edge %d %s %d (%s) -> %d (%s)", e.Index, e.Partitioning, e.From, e.FromOperator, e.To, e.ToOperator)
		if e.Input != 0 {
			fmt.Fprintf(&b, " input %d", e.Input)
		}
		if e.Side != "" {
			fmt.Fprintf(&b, " side %q", e.Side)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// drawLogical draws any valid graph.
func drawLogical(t *rapid.T) *Logical {
	l := &Logical{Entrypoint: "job"}
	for i := range rapid.IntRange(1, 12).Draw(t, "operators") {
		o := Operator{Name: fmt.Sprintf("op%d", i), Kind: KindMap,
			Parallelism: rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "p"), MaxParallelism: rapid.SampledFrom([]int{0, 0, 5, 7}).Draw(t, "max"),
			Chaining: Chaining(rapid.IntRange(0, 2).Draw(t, "chaining"))}
		inputs := 0
		if i > 0 {
			inputs = rapid.SampledFrom([]int{0, 1, 1, 1, 2}).Draw(t, "inputs")
		}
		if inputs == 0 {
			o.Kind = KindSource
		}
		if rapid.Bool().Draw(t, "side output") {
			o.Sides = []SideOutput{{Name: "side", Out: "T"}}
		}
		for j := range inputs {
			from := rapid.IntRange(0, i-1).Draw(t, "from")
			in := Input{From: l.Operators[from].Name, Codec: "int64", Partitioning: Partitioning(rapid.IntRange(0, int(Custom)).Draw(t, "partitioning"))}
			switch in.Partitioning {
			case Hash:
				in.Key = "string"
			case Custom:
				in.Partitioner = "by"
			}
			if j > 0 {
				in.Port = o.Inputs[j-1].Port + rapid.IntRange(0, 1).Draw(t, "port")
			}
			if len(l.Operators[from].Sides) > 0 && rapid.Bool().Draw(t, "side") {
				in.Side = "side"
			}
			o.Inputs = append(o.Inputs, in)
		}
		l.Operators = append(l.Operators, o)
	}
	return l
}

// TestPlansKeepTheRules checks every plan of random graphs against the rules of
// chaining, said without the compiler's words.
func TestPlansKeepTheRules(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := drawLogical(t)
		o := Options{Parallelism: rapid.IntRange(0, 4).Draw(t, "job's p"), DisableChaining: rapid.Bool().Draw(t, "no chaining")}
		g, err := Compile(l, o)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Compile(l, o)
		if err != nil || describe(g) != describe(again) || g.Hash != again.Hash {
			t.Fatalf("two plans of one graph, %v", err)
		}
		at := make(map[string]*Vertex)
		for i := range g.Vertices {
			v := &g.Vertices[i]
			if v.Index != i || v.MaxParallelism < v.Parallelism || len(v.IDs) != len(v.Operators) {
				t.Fatalf("vertex %+v", v)
			}
			for j, name := range v.Operators {
				if at[name] != nil || v.IDs[j] != weir.OperatorIDOf(name) {
					t.Fatalf("%s: twice, or another's id", name)
				}
				at[name] = v
			}
		}
		if len(at) != len(l.Operators) {
			t.Fatalf("%d of %d operators are placed", len(at), len(l.Operators))
		}
		edges := 0
		for i := range l.Operators {
			edges += checkOperator(t, l, g, o, &l.Operators[i], at)
		}
		if edges != len(g.Edges) {
			t.Fatalf("%d edges, want %d", len(g.Edges), edges)
		}
	})
}

// checkOperator returns the number of edges that lead to the operator.
func checkOperator(t *rapid.T, l *Logical, g *JobGraph, o Options, op *Operator, at map[string]*Vertex) int {
	v := at[op.Name]
	want := op.Parallelism
	if want == 0 {
		want = max(o.Parallelism, 1)
	}
	if v.Parallelism != want || op.MaxParallelism != 0 && v.MaxParallelism != op.MaxParallelism {
		t.Fatalf("%s: parallelism %d of %d", op.Name, v.Parallelism, v.MaxParallelism)
	}
	if v.Operators[0] != op.Name { // fused
		from := op.Inputs[0].From
		if len(op.Inputs) != 1 || at[from] != v || op.Inputs[0].Partitioning != Forward || o.DisableChaining ||
			op.Chaining != ChainAuto || l.Operator(from).Chaining == ChainNever || slices.Index(v.Operators, from) > slices.Index(v.Operators, op.Name) {
			t.Fatalf("%s must not be fused: %+v", op.Name, v)
		}
		return 0
	}
	if len(v.Inputs) != len(op.Inputs) {
		t.Fatalf("%s: inputs %v", op.Name, v.Inputs)
	}
	for i, e := range v.Inputs {
		edge, in := g.Edges[e], op.Inputs[i]
		if edge.To != v.Index || edge.From >= edge.To || edge.FromOperator != in.From || edge.From != at[in.From].Index || !slices.Contains(at[in.From].Outputs, e) {
			t.Fatalf("%s: edge %+v", op.Name, edge)
		}
		if edge.Input != i || edge.Side != in.Side || edge.ID() != (weir.EdgeID{From: in.From, To: op.Name, Input: int32(i)}) {
			t.Fatalf("%s: edge %+v of input %d", op.Name, edge, i)
		}
		want := in.Partitioning
		if want == Forward && at[in.From].Parallelism != v.Parallelism {
			want = Rebalance
		}
		if edge.Partitioning != want {
			t.Fatalf("%s: edge %+v, want %s", op.Name, edge, want)
		}
	}
	return len(op.Inputs)
}

func TestTextLeavesOutWhatIsPhysical(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := drawLogical(t)
		text, digest := l.Text(), l.Digest()
		i := rapid.IntRange(0, len(l.Operators)-1).Draw(t, "which")
		op := &l.Operators[i]
		op.Parallelism, op.MaxParallelism, op.Chaining = 17, 19, ChainNever
		if l.Text() != text || l.Digest() != digest || CheckText(text, l.Text()) != nil {
			t.Fatal("parallelism or chaining is in the text")
		}
		op.Name += "\n\"x"
		err := CheckText(text, l.Text())
		if l.Digest() == digest || !errors.Is(err, ErrMismatch) || strings.Contains(err.Error(), "\n") {
			t.Fatalf("another name: %v", err)
		}
		if DigestOf(text) != digest {
			t.Fatal("digest is not the text's")
		}
	})
}

func TestDiffShowsTheFirstDifference(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ want, got, diff string }{
		{"a\nb\n", "a\nb\n", ""},
		{"a\nb\n", "a\nc\n", "line 2: want <b>, got <c>"},
		{"a\nb\n", "a\n", "line 2: want <b>, got the end"},
		{"", "x", "line 1: want the end, got <x>"},
		{"a\n", "a", "one of them lacks the end of its last line"},
	} {
		if d := Diff(tt.want, tt.got); d != tt.diff {
			t.Errorf("got %q, want %q", d, tt.diff)
		}
	}
}

func TestTooMuchParallelismOfTheJobIsRefused(t *testing.T) {
	t.Parallel()
	l := &Logical{Entrypoint: "job", Operators: []Operator{{Name: "a", Kind: KindSource}}}
	for _, o := range []Options{{Parallelism: -1}, {Parallelism: weir.MaxMaxParallelism + 1}, {MaxParallelism: -1}, {MaxParallelism: weir.MaxMaxParallelism + 1}} {
		if _, err := Compile(l, o); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	g, err := Compile(l, Options{Parallelism: weir.MaxMaxParallelism})
	if err != nil || g.Vertices[0].MaxParallelism != weir.MaxMaxParallelism {
		t.Errorf("%+v, %v", g, err)
	}
}
