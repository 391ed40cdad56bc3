package figures

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestMainPrintsWhatWasMeasured(t *testing.T) {
	t.Parallel()
	measure := func() ([]Figure, error) { return []Figure{{Name: "start", Value: 1.25, Unit: "s", Aim: 1.5}}, nil }
	for _, c := range []struct {
		args    []string
		measure func() ([]Figure, error)
		code    int
		want    string
	}{
		{nil, measure, 0, "1.25 s"},
		{[]string{"-o", "json"}, measure, 0, `"aim":1.5`},
		{[]string{"-o", "yaml"}, measure, 2, ""},
		{nil, func() ([]Figure, error) { return nil, errors.New("broken") }, 1, ""},
	} {
		var out, errs bytes.Buffer
		if code := Main(c.args, &out, &errs, nil, c.measure); code != c.code || !strings.Contains(out.String(), c.want) {
			t.Errorf("%v: code %d, output %q, errors %q", c.args, code, out.String(), errs.String())
		}
	}
}
