package jobgraph

import "github.com/weirflow/weir"

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
	seen := make(map[string]bool)
	for i := range l.Operators {
		o := &l.Operators[i]
		if o.Name == "" {
			f.add("operator %d (%s) without a name", i+1, o.Kind)
		} else if seen[o.Name] {
			f.operator(o.Name, "name used twice")
		}
		o.validate(f, seen)
		seen[o.Name] = true
	}
}

// validate checks one operator; seen holds the names of those before it.
func (o *Operator) validate(f *faults, seen map[string]bool) {
	if o.Kind == "" {
		f.operator(o.Name, "no kind")
	}
	if (o.Kind == KindSource) != (len(o.Inputs) == 0) {
		f.operator(o.Name, "a %s with %d inputs", o.Kind, len(o.Inputs))
	}
	keyed := false
	for _, in := range o.Inputs {
		if !seen[in.From] {
			f.operator(o.Name, "input %q is not defined before it", in.From)
		}
		if in.Partitioning > Rebalance {
			f.operator(o.Name, "input %q: unknown partitioning %d", in.From, in.Partitioning)
		}
		if (in.Partitioning == Hash) != (in.Key != "") {
			f.operator(o.Name, "input %q: %s partitioning with key %q", in.From, in.Partitioning, in.Key)
		}
		keyed = keyed || in.Partitioning == Hash
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
