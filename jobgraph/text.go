package jobgraph

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// textHeader opens a canonical text and numbers its format.
const textHeader = "weir graph 1"

// Text is the graph's canonical text: equal graphs have equal texts, and a line
// is about one thing, so that two texts can be compared line by line. Whatever is
// physical (parallelism, chaining) is left out.
func (l *Logical) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nentrypoint %q\n", textHeader, l.Entrypoint)
	for i := range l.Operators {
		l.Operators[i].writeText(&b)
	}
	for _, name := range l.Hooks {
		fmt.Fprintf(&b, "%s%q\n", hookWord, name)
	}
	return b.String()
}

func (o *Operator) writeText(b *strings.Builder) {
	fmt.Fprintf(b, "operator %q kind %q in %q out %q\n", o.Name, string(o.Kind), o.In, o.Out)
	for _, in := range o.Inputs {
		fmt.Fprintf(b, "operator %q input %q %s key %q codec %q%s\n", o.Name, in.From, in.Partitioning, in.Key, in.Codec, in.more())
	}
	for _, s := range o.Sides {
		fmt.Fprintf(b, "operator %q side %q out %q\n", o.Name, s.Name, s.Out)
	}
	for _, s := range o.States {
		fmt.Fprintf(b, "operator %q state %q kind %q key %q value %q\n", o.Name, s.Name, s.Kind, s.Key, s.Value)
	}
}

// more is what most inputs have nothing of.
func (in *Input) more() string {
	var b strings.Builder
	if in.Side != "" {
		fmt.Fprintf(&b, " side %q", in.Side)
	}
	if in.Partitioner != "" {
		fmt.Fprintf(&b, " partitioner %q", in.Partitioner)
	}
	if in.Port != 0 {
		fmt.Fprintf(&b, " port %d", in.Port)
	}
	return b.String()
}

// Digest is the SHA-256 of the canonical text: the graph's hash.
func (l *Logical) Digest() Digest { return DigestOf(l.Text()) }

// DigestOf returns the digest of a canonical text.
func DigestOf(text string) Digest { return sha256.Sum256([]byte(text)) }

func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Diff describes the first line in which two canonical texts differ, and is empty
// if they do not.
func Diff(want, got string) string {
	if want == got {
		return ""
	}
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := 0; i < max(len(w), len(g)); i++ {
		lw, lg := line(w, i), line(g, i)
		if lw != lg {
			return fmt.Sprintf("line %d: want %s, got %s", i+1, lw, lg)
		}
	}
	return "one of them lacks the end of its last line"
}

// line is a line of a text for people, or what stands for its absence.
func line(lines []string, i int) string {
	if i >= len(lines) || i == len(lines)-1 && lines[i] == "" {
		return "the end"
	}
	return "<" + lines[i] + ">"
}

// CheckText returns an error that wraps [ErrMismatch] and shows the first
// difference, unless the texts are equal.
func CheckText(want, got string) error {
	if d := Diff(want, got); d != "" {
		return fmt.Errorf("%w: %s", ErrMismatch, d)
	}
	return nil
}
