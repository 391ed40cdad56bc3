package figures

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"text/tabwriter"
)

// Figure is one value.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Aim   float64 `json:"aim,omitempty"` // at most; 0: none
	Note  string  `json:"note,omitempty"`
}

// Main is the body of a program: it reads the flags that add registers and -o (table
// or json), measures, prints and returns the exit code.
func Main(args []string, stdout, stderr io.Writer, add func(flags *flag.FlagSet), measure func() ([]Figure, error)) int {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	out := flags.String("o", "table", "output: table or json")
	if add != nil {
		add(flags)
	}
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if flags.NArg() > 0 || (*out != "table" && *out != "json") {
		fmt.Fprintln(stderr, "usage: [-o table|json]")
		return 2
	}
	list, err := measure()
	if err == nil && *out == "json" {
		err = writeJSON(stdout, list)
	} else if err == nil {
		err = writeTable(stdout, list)
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

func writeJSON(w io.Writer, list []Figure) error {
	enc := json.NewEncoder(w)
	for _, f := range list {
		if err := enc.Encode(f); err != nil {
			return err
		}
	}
	return nil
}

func writeTable(w io.Writer, list []Figure) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "name\tvalue\taim\tnote\t")
	for _, f := range list {
		aim := "none"
		if f.Aim > 0 {
			aim = fmt.Sprintf("≤ %.4g %s", f.Aim, f.Unit)
		}
		fmt.Fprintf(t, "%s\t%.4g %s\t%s\t%s\t\n", f.Name, f.Value, f.Unit, aim, f.Note)
	}
	return t.Flush()
}
