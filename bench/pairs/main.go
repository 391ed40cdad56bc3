package pairs

import (
	"flag"
	"fmt"
	"io"
	"regexp"
)

// Case is a comparison that a program offers under a name.
type Case struct {
	Name string
	Run  func(minPairs int) Result
}

// Main is the body of a program in bench: it reads the flags -run (a regular
// expression on names), -pairs and -o (table or json), runs the cases in order
// and returns the exit code: 0, 1 if a bar was missed, 2 for bad flags.
func Main(args []string, stdout, stderr io.Writer, cases ...Case) int {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	run := flags.String("run", "", "regular expression on the names of cases")
	n := flags.Int("pairs", LeastPairs, "least number of pairs")
	out := flags.String("o", "table", "output: table or json")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	match, err := regexp.Compile(*run)
	if err != nil || flags.NArg() > 0 || (*out != "table" && *out != "json") {
		fmt.Fprintln(stderr, "usage: [-run regexp] [-pairs n] [-o table|json]")
		return 2
	}
	var results []Result
	code := 0
	for _, c := range cases {
		if !match.MatchString(c.Name) {
			continue
		}
		r := c.Run(*n)
		results = append(results, r)
		if r.Failed() {
			code = 1
		}
	}
	write := WriteTable
	if *out == "json" {
		write = WriteJSON
	}
	if err := write(stdout, results...); err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	return code
}
