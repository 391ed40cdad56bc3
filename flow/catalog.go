package flow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/operator"
)

// BuildTimeout bounds a builder's run for callers that set no deadline.
const BuildTimeout = 30 * time.Second

// errBuildTimeout is the cause of a build that took longer than [BuildTimeout].
var errBuildTimeout = fmt.Errorf("builder did not return within %s", BuildTimeout)

// errStillBuilding refuses a build whose entry point's builder has been given up
// before and has not returned yet: it would be one more goroutine for nothing.
var errStillBuilding = errors.New("an earlier run of its builder has not returned yet")

type catalog struct {
	jobs []Job // sorted by name
	// stuck counts the runs of each job's builder that were given up and have not
	// returned.
	stuck []atomic.Int32
}

var _ operator.Catalog = (*catalog)(nil)

// NewCatalog makes the catalog of these jobs. Faulty definitions and names used
// twice are errors, joined.
func NewCatalog(jobs ...Job) (operator.Catalog, error) {
	c := &catalog{jobs: slices.Clone(jobs), stuck: make([]atomic.Int32, len(jobs))}
	slices.SortStableFunc(c.jobs, func(a, b Job) int { return strings.Compare(a.name, b.name) })
	var faults []error
	for i, j := range c.jobs {
		switch {
		case j.build == nil:
			faults = append(faults, errors.New("a job is made by flow.Define"))
		case j.fault != nil:
			faults = append(faults, fmt.Errorf("job %q: %w", j.name, j.fault))
		case i > 0 && c.jobs[i-1].name == j.name:
			faults = append(faults, fmt.Errorf("job %q is defined twice", j.name))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return c, nil
}

// Entrypoints implements [operator.Catalog].
func (c *catalog) Entrypoints() []operator.Entrypoint {
	list := make([]operator.Entrypoint, len(c.jobs))
	for i, j := range c.jobs {
		list[i] = j.Entrypoint()
	}
	return list
}

// Build implements [operator.Catalog]. The builder runs on a goroutine of its own,
// so that one that never returns costs its goroutine and nothing else.
func (c *catalog) Build(ctx context.Context, entrypoint string, params map[string]string) (operator.Program, error) {
	i := slices.IndexFunc(c.jobs, func(j Job) bool { return j.name == entrypoint })
	if i < 0 {
		names := make([]string, len(c.jobs))
		for i, j := range c.jobs {
			names[i] = j.name
		}
		return nil, fmt.Errorf("%w %q; known are: %s", operator.ErrUnknownEntrypoint, entrypoint, listNames(names))
	}
	if c.stuck[i].Load() > 0 {
		return nil, fmt.Errorf("build job %q: %w", entrypoint, errStillBuilding)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, BuildTimeout, errBuildTimeout)
	defer cancel()

	type result struct {
		program operator.Program
		err     error
	}
	done := make(chan result, 1)
	var over atomic.Bool // the builder returned, or was given up: whichever is second puts it right
	g := group.New(ctx, "builder/"+entrypoint)
	err := g.GoThen("build", func(context.Context) error {
		defer func() {
			if over.Swap(true) {
				c.stuck[i].Add(-1)
			}
		}()
		p, err := c.jobs[i].Build(params)
		if err == nil {
			done <- result{program: p}
		}
		return err
	}, func(err error) {
		if err != nil {
			done <- result{err: buildError(entrypoint, err)}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("build job %q: %w", entrypoint, context.Cause(ctx))
	}
	select {
	case r := <-done:
		return r.program, r.err
	case <-ctx.Done():
		if !over.Swap(true) {
			c.stuck[i].Add(1)
		}
		return nil, fmt.Errorf("build job %q: %w", entrypoint, context.Cause(ctx))
	}
}

// buildError gives a builder's panic its stack, since nobody else will log it, and says
// what happened to one that did not return.
func buildError(entrypoint string, err error) error {
	var p *group.PanicError
	if errors.As(err, &p) {
		return fmt.Errorf("build job %q: builder panicked: %w\n%s", entrypoint, err, p.Stack)
	}
	if errors.Is(err, group.ErrExited) {
		return fmt.Errorf("build job %q: the builder ended its goroutine by runtime.Goexit; return instead: %w", entrypoint, err)
	}
	return err
}
