package main

import (
	"strings"
	"testing"
)

func TestReportEndsWithSkipsAndClosingLines(t *testing.T) {
	var out strings.Builder
	r := newReport(&out)
	for line := range strings.Lines(`{"Action":"output","Package":"m/a","Test":"TestGood","Output":"noise of a good test\n"}
{"Action":"pass","Package":"m/a","Test":"TestGood"}
{"Action":"output","Package":"m/a","Test":"TestLater","Output":"    a_test.go:3: not now\n"}
{"Action":"skip","Package":"m/a","Test":"TestLater"}
{"Action":"output","Package":"m/a","Output":"PASS\n"}
{"Action":"output","Package":"m/a","Output":"ok  \tm/a\t0.1s\n"}
{"Action":"pass","Package":"m/a","Elapsed":0.1}
{"Action":"output","Package":"m/b","Test":"TestBad","Output":"=== RUN   TestBad\n"}
{"Action":"output","Package":"m/b","Test":"TestBad","Output":"    b_test.go:3: wrong\n"}
{"Action":"fail","Package":"m/b","Test":"TestBad"}
{"Action":"output","Package":"m/b","Output":"panic: afterwards\n"}
{"Action":"output","Package":"m/b","Output":"FAIL\tm/b\t0.2s\n"}
{"Action":"fail","Package":"m/b","Elapsed":0.2}
{"Action":"output","Package":"m/c","Output":"?   \tm/c\t[no test files]\n"}
{"Action":"skip","Package":"m/c"}
go: a line that is no event
{"ImportPath":"m/d","Action":"build-output","Output":"d.go:1:1: syntax error\n"}
`) {
		r.line([]byte(line))
	}
	r.close()
	const want = `    b_test.go:3: wrong
panic: afterwards
go: a line that is no event
d.go:1:1: syntax error
skipped: m/a TestLater
SKIPPED 1
ok  	m/a	0.1s
FAIL	m/b	0.2s
?   	m/c	[no test files]
`
	if out.String() != want || !r.failed {
		t.Errorf("failed: %v\ngot:\n%s\nwant:\n%s", r.failed, out.String(), want)
	}
}

func TestCommandThatFailsWithoutATestFailsTheReport(t *testing.T) {
	var out strings.Builder
	r := newReport(&out)
	r.run(".", []string{"X=1", "go", "no-such-command"})
	r.run(".", []string{"/no/such/program"})
	r.run(".", []string{"go", "no-such-command"})
	r.close()
	if !r.failed || strings.Count(out.String(), "\nFAIL\t") != 3 {
		t.Errorf("failed: %v\n%s", r.failed, out.String())
	}
}

func TestArgumentsAreSplitIntoCommands(t *testing.T) {
	got := split([]string{"A=1", "go", "test", "--", "go", "vet"})
	if len(got) != 2 || strings.Join(got[0], " ") != "A=1 go test" || strings.Join(got[1], " ") != "go vet" {
		t.Errorf("got %q", got)
	}
}
