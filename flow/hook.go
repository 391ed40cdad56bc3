package flow

import (
	"fmt"

	"github.com/weirflow/weir/operator"
)

// maxHooks bounds the hooks of a job, whose states stand in the header of every snapshot.
const maxHooks = 8

// Hook adds a master hook, which takes part in the job's checkpoints in the JobManager.
// Its state is found by its name. newHook is called there, once for each time that the
// job is started by a JobManager.
func Hook(g *Graph, name string, newHook func() operator.MasterHook) {
	switch {
	case name == "":
		g.fault("a hook needs a name")
	case g.hooks[name] != nil:
		g.fault("hook %q: name used twice", name)
	case len(g.hooks) == maxHooks:
		g.fault("hook %q: a job has at most %d", name, maxHooks)
	case newHook == nil:
		g.fault("hook %q: there is none", name)
	default:
		if g.hooks == nil {
			g.hooks = make(map[string]func() operator.MasterHook)
		}
		g.hooks[name] = newHook
		g.hookNames = append(g.hookNames, name)
	}
}

var _ operator.HookProgram = (*program)(nil)

// NewHook implements [operator.HookProgram].
func (p *program) NewHook(name string) (operator.MasterHook, error) {
	newHook := p.hooks[name]
	if newHook == nil {
		return nil, fmt.Errorf("no hook is called %q", name)
	}
	h := newHook()
	if isNil(h) {
		return nil, fmt.Errorf("hook %q: the function gave none", name)
	}
	return h, nil
}
