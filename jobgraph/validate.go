package jobgraph

import (
	"slices"

	"github.com/weirflow/weir"
)

// Validate finds what is wrong with a logical graph whatever its parallelism; all
// faults are joined and wrap [ErrInvalid].
func (l *Logical) Validate() error {
	var f faults
	l.validate(&f)
	return f.err()
}

func (l *Logical) validate(f *faults) {
	if l.Entrypoint == "" {
		f.add("entry point without a name")
	}
	if len(l.Operators) == 0 {
		f.add("no operators")
	}
	seen := make(map[string]*Operator)
	for i := range l.Operators {
		o := &l.Operators[i]
		if o.Name == "" {
			f.add("operator %d (%s) without a name", i+1, o.Kind)
		} else if seen[o.Name] != nil {
			f.operator(o.Name, "name used twice")
		}
		o.validate(f, seen)
		seen[o.Name] = o
	}
}

// validate checks one operator; seen has those before it.
func (o *Operator) validate(f *faults, seen map[string]*Operator) {
	if o.Kind == "" {
		f.operator(o.Name, "no kind")
	}
	if (o.Kind == KindSource) != (len(o.Inputs) == 0) {
		f.operator(o.Name, "a %s with %d inputs", o.Kind, len(o.Inputs))
	}
	keyed := o.validateInputs(f, seen)
	sides := make(map[string]bool)
	for _, s := range o.Sides {
		if s.Name == "" {
			f.operator(o.Name, "side output without a name")
		} else if sides[s.Name] {
			f.operator(o.Name, "side output %q declared twice", s.Name)
		}
		sides[s.Name] = true
	}
	o.validateStates(f, keyed)
	if o.Chaining > ChainNever {
		f.operator(o.Name, "unknown chaining %d", o.Chaining)
	}
	if o.Parallelism < 0 || o.Parallelism > weir.MaxMaxParallelism {
		f.operator(o.Name, "parallelism %d is not in 1 to %d", o.Parallelism, weir.MaxMaxParallelism)
	}
	if o.MaxParallelism < 0 || o.MaxParallelism > weir.MaxMaxParallelism {
		f.operator(o.Name, "maximum parallelism %d is not in 1 to %d", o.MaxParallelism, weir.MaxMaxParallelism)
	}
}

// validateInputs checks the inputs, and says whether they are keyed.
func (o *Operator) validateInputs(f *faults, seen map[string]*Operator) (keyed bool) {
	port, key := 0, ""
	for i := range o.Inputs {
		in := &o.Inputs[i]
		in.validate(f, o.Name, seen)
		if in.Port != port && in.Port != port+1 || i == 0 && in.Port != 0 {
			f.operator(o.Name, "input %q: port %d after port %d", in.From, in.Port, port)
		}
		port = in.Port
		if in.Partitioning != Hash {
			continue
		}
		if keyed && in.Key != key {
			f.operator(o.Name, "input %q: key %q, and that of another input %q", in.From, in.Key, key)
		}
		keyed, key = true, in.Key
	}
	return keyed
}

// validate checks an input of an operator.
func (in *Input) validate(f *faults, operator string, seen map[string]*Operator) {
	from := seen[in.From]
	switch {
	case from == nil:
		f.operator(operator, "input %q is not defined before it", in.From)
	case in.Side != "" && !slices.ContainsFunc(from.Sides, func(s SideOutput) bool { return s.Name == in.Side }):
		f.operator(operator, "input %q has no side output %q", in.From, in.Side)
	}
	if in.Partitioning > Custom {
		f.operator(operator, "input %q: unknown partitioning %d", in.From, in.Partitioning)
	}
	if (in.Partitioning == Hash) != (in.Key != "") {
		f.operator(operator, "input %q: %s partitioning with key %q", in.From, in.Partitioning, in.Key)
	}
	if (in.Partitioning == Custom) != (in.Partitioner != "") {
		f.operator(operator, "input %q: %s partitioning with partitioner %q", in.From, in.Partitioning, in.Partitioner)
	}
}

func (o *Operator) validateStates(f *faults, keyed bool) {
	names := make(map[string]bool)
	for _, s := range o.States {
		if s.Name == "" {
			f.operator(o.Name, "state without a name")
		} else if names[s.Name] {
			f.operator(o.Name, "state %q declared twice", s.Name)
		}
		names[s.Name] = true
	}
	if len(o.States) > 0 && !keyed {
		f.operator(o.Name, "keyed state without a keyed input")
	}
}
