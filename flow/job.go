package flow

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/weirflow/weir/operator"
)

// Job is a job's entry point: a name, a struct of parameters, and a builder. It is
// a value; [Define] makes it.
type Job struct {
	name   string
	help   string
	fields []paramField
	fault  error // of the definition itself
	build  func(params map[string]string) (*Graph, error)
}

// Define makes a job. The builder is given an empty graph and the parameters; it
// adds operators and returns. It may read its parameters and nothing else: it is
// run again for every attempt of every task, and must write the same graph each time.
//
// P is a struct whose exported fields are the parameters: strings, booleans,
// integers, floats, time.Duration and [Size]. Tags:
//
//	param:"name"           the parameter's name; default: the field's, in kebab-case
//	param:"name,required"  it must be given
//	default:"5ms"          its value when it is not given
//	help:"..."             one line for help texts
func Define[P any](name string, build func(g *Graph, p P) error) Job {
	j := Job{name: name}
	j.fields, j.fault = paramFields(reflect.TypeFor[P]())
	if name == "" {
		j.fault = errors.Join(j.fault, errors.New("a job needs a name"))
	}
	j.build = func(params map[string]string) (*Graph, error) {
		var p P
		if err := decodeParams(reflect.ValueOf(&p).Elem(), j.fields, params); err != nil {
			return nil, err
		}
		g := &Graph{entrypoint: name, names: make(map[string]bool)}
		if err := build(g, p); err != nil {
			g.faults = append(g.faults, err)
		}
		return g, nil
	}
	return j
}

// Help returns the job with a line that says what it is for.
func (j Job) Help(text string) Job {
	j.help = text
	return j
}

// Name is the job's name.
func (j Job) Name() string { return j.name }

// Entrypoint describes the job for lists and help texts.
func (j Job) Entrypoint() operator.Entrypoint {
	e := operator.Entrypoint{Name: j.name, Help: j.help}
	for _, f := range j.fields {
		e.Params = append(e.Params, f.Param)
	}
	return e
}

// Build runs the builder once, on the caller's goroutine. All faults of the graph
// are joined. Most callers want a [NewCatalog], which also survives a builder that
// panics or does not return.
func (j Job) Build(params map[string]string) (operator.Program, error) {
	if j.build == nil {
		return nil, errors.New("a job is made by flow.Define")
	}
	if j.fault != nil {
		return nil, fmt.Errorf("job %q: %w", j.name, j.fault)
	}
	g, err := j.build(params)
	if err != nil {
		return nil, fmt.Errorf("job %q: %w", j.name, err)
	}
	p, err := g.program()
	if err != nil {
		return nil, fmt.Errorf("job %q: %w", j.name, err)
	}
	return p, nil
}
