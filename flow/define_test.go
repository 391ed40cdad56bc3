package flow_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/operator"
)

type allParams struct {
	Text     string        `help:"any text" default:"x"`
	On       bool          `default:"true"`
	N        int           `param:"count" default:"-3"`
	Small    uint8         `default:"200"`
	Ratio    float64       `default:"0.5"`
	MaxWait  time.Duration `default:"5ms"`
	HTTPSize flow.Size     `default:"1KiB"`
	Must     string        `param:",required"`
}

func paramsOf(params map[string]string) (allParams, error) {
	var got allParams
	job := flow.Define("params", func(g *flow.Graph, p allParams) error {
		got = p
		flow.To(flow.From(g, "in", numbers(1)), "out", flow.Discard[int]())
		return nil
	})
	_, err := job.Build(params)
	return got, err
}

func TestParametersAreDecodedWithDefaults(t *testing.T) {
	t.Parallel()
	got, err := paramsOf(map[string]string{"must": ""})
	want := allParams{"x", true, -3, 200, 0.5, 5 * time.Millisecond, 1024, ""}
	if err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	got, err = paramsOf(map[string]string{"text": "", "on": "false", "count": "7", "small": "0", "ratio": "1e3", "max-wait": "1m", "http-size": "2MB", "must": "m"})
	want = allParams{"", false, 7, 0, 1000, time.Minute, 2e6, "m"}
	if err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestBadParametersAreNamedAllAtOnce(t *testing.T) {
	t.Parallel()
	_, err := paramsOf(map[string]string{"on": "maybe", "count": "1.5", "small": "256", "max-wait": "5", "http-size": "1XB", "speed": "9"})
	if !errors.Is(err, operator.ErrBadParams) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{
		`parameter "on": "maybe" is not a bool`,
		`parameter "count": "1.5" is not a int`,
		`parameter "small": "256" is not a uint8`,
		`parameter "max-wait": "5" is not a duration such as 5ms or 1m30s`,
		`parameter "http-size": "1XB" is not a size`,
		`parameter "must" is required`,
		`unknown parameter "speed"; known are: count, http-size, max-wait, must, on, ratio, small, text`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %s in:\n%v", want, err)
		}
	}
}

func TestFaultyDefinitionsAreRefusedByTheCatalog(t *testing.T) {
	t.Parallel()
	nothing := func(*flow.Graph, struct{}) error { return nil }
	for want, jobs := range map[string][]flow.Job{
		`job "a" is defined twice`: {flow.Define("a", nothing), flow.Define("b", nothing), flow.Define("a", nothing)},
		`a job needs a name`:       {flow.Define("", nothing)},
		`made by flow.Define`:      {{}},
		`want a struct`:            {flow.Define("s", func(*flow.Graph, string) error { return nil })},
		`type []string is not supported`: {flow.Define("s", func(*flow.Graph, struct {
			L []string
		}) error {
			return nil
		})},
		`field secret is not exported`: {flow.Define("s", func(*flow.Graph, struct {
			secret string
		}) error {
			return nil
		})},
		`default: "x" is not a int`: {flow.Define("s", func(*flow.Graph, struct {
			N int `default:"x"`
		}) error {
			return nil
		})},
		`declared twice`: {flow.Define("s", func(*flow.Graph, struct {
			A int `param:"x"`
			B int `param:"x"`
		}) error {
			return nil
		})},
	} {
		if _, err := flow.NewCatalog(jobs...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestSizesAreReadAndWritten(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]flow.Size{"0": 0, "12": 12, "12B": 12, "3KiB": 3072, "3 kb": 3000, "1MiB": 1 << 20, "2GB": 2e9, "1TiB": 1 << 40} {
		got, err := flow.ParseSize(text)
		if err != nil || got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
		if again, err := flow.ParseSize(got.String()); err != nil || again != want {
			t.Errorf("%s became %s", text, got)
		}
	}
	for _, text := range []string{"", "KiB", "-1", "1.5KB", "9999999999TB", "1KK"} {
		if s, err := flow.ParseSize(text); err == nil {
			t.Errorf("%q is %d", text, s)
		}
	}
}
