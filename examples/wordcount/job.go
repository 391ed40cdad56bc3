package wordcount

import (
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/weirflow/weir/connector/file"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/operator"
)

// Name is the entry point's.
const Name = "wordcount"

// Params are the job's parameters.
type Params struct {
	Input     string        `param:",required" help:"a file, a directory or a pattern; JobManager and TaskManagers read it under this path"`
	Output    string        `param:",required" help:"a directory for the files part-…; all TaskManagers see it under this path"`
	SplitSize flow.Size     `default:"16MiB" help:"the most that one subtask is given to read at a time"`
	MaxLine   flow.Size     `default:"1MiB" help:"the longest line; a longer one fails the job"`
	Sleep     time.Duration `default:"0s" help:"time that each line takes, for watching"`
}

// Job is the entry point.
var Job = flow.Define(Name, build).Help("counts the words of files into files, exactly once")

// Total is how often a word occurs.
type Total struct {
	Word string
	N    int64
}

// maxWord is the longest word in bytes; of a longer run every so many bytes are a word,
// so that a file that is no text does no harm.
const maxWord = 256

func build(g *flow.Graph, p Params) error {
	if err := p.validate(); err != nil {
		return err
	}
	in := file.Lines(file.SourceOptions{Input: p.Input, SplitBytes: int64(p.SplitSize), MaxLineBytes: int(p.MaxLine)})
	lines := flow.From(g, "lines", in)
	words := flow.FlatMap(lines, "split", func(line string) iter.Seq[string] {
		if p.Sleep > 0 {
			time.Sleep(p.Sleep)
		}
		return Words(line)
	})
	byWord := flow.KeyBy(words, "by-word", func(w string) string { return w })
	totals := flow.Process(byWord, "count", newCounter)
	flow.To(totals, "out", file.NewSink(file.SinkOptions{Output: p.Output, Suffix: ".txt"}, appendTotal))
	return nil
}

func (p Params) validate() error {
	var faults []error
	bad := func(name string, v any, want string) {
		faults = append(faults, fmt.Errorf("%w: parameter %q is %v, want %s", operator.ErrBadParams, name, v, want))
	}
	if p.Input == "" {
		bad("input", `""`, "a path")
	}
	if p.Output == "" {
		bad("output", `""`, "a directory")
	}
	if p.SplitSize < 1 {
		bad("split-size", p.SplitSize, "1 or more")
	}
	if p.MaxLine < 1 || p.MaxLine > 64<<20 {
		bad("max-line", p.MaxLine, "1 to 64MiB")
	}
	if p.Sleep < 0 || p.Sleep > time.Minute {
		bad("sleep", p.Sleep, "0 to 1m")
	}
	return errors.Join(faults...)
}

// Words are the runs of letters and digits of a line, in lower case.
func Words(line string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for w := range strings.FieldsFuncSeq(line, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			for w = strings.ToLower(w); len(w) > maxWord; w = w[maxWord:] {
				if !yield(w[:maxWord]) {
					return
				}
			}
			if !yield(w) {
				return
			}
		}
	}
}

// counter counts, and emits each word's total at the end of the input.
type counter struct{ n *flow.Value[int64] }

func newCounter(s *flow.Setup) flow.Processor[string, string, Total] {
	return &counter{n: flow.NewValue[int64](s, "n")}
}

// Process implements [flow.Processor].
func (c *counter) Process(*flow.Context[string], string, *flow.Out[Total]) error {
	c.n.Update(func(n *int64) { *n++ })
	return nil
}

// FinishKey implements [flow.KeyFinisher].
func (c *counter) FinishKey(ctx *flow.Context[string], out *flow.Out[Total]) error {
	out.Emit(Total{ctx.Key(), c.n.Get()})
	return nil
}

// appendTotal makes a line of a total.
func appendTotal(b []byte, t Total) []byte {
	b = append(append(b, t.Word...), '\t')
	return strconv.AppendInt(b, t.N, 10)
}

// Count counts the words of a text: the sorted lines of all the job's output for it.
func Count(text string) []string {
	n := make(map[string]int64)
	for line := range strings.SplitSeq(text, "\n") {
		for w := range Words(line) {
			n[w]++
		}
	}
	return sortedLines(n)
}
