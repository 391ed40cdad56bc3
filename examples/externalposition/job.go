package externalposition

import (
	"fmt"

	"github.com/weirflow/weir/connector/generator"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/operator"
)

// Names in the job.
const (
	Name     = "external-position"
	HookName = "position"
)

// Params are the job's parameters.
type Params struct {
	Log  string  `param:",required" help:"the file whose length is noted in checkpoints"`
	Note string  `param:",required" help:"a file that says what the newest complete checkpoint covers"`
	Rate float64 `default:"100" help:"records per second of the job's own input"`
}

// Job is the entry point.
var Job = flow.Define(Name, build).Help("notes in its checkpoints how long a log is: an example of a master hook")

func build(g *flow.Graph, p Params) error {
	if p.Log == "" || p.Note == "" {
		return fmt.Errorf("%w: parameters log and note want paths", operator.ErrBadParams)
	}
	flow.Hook(g, HookName, func() operator.MasterHook { return &position{log: p.Log, note: p.Note} })
	in := flow.From(g, "numbers", generator.New(generator.Options{Rate: p.Rate}, func(n int64) int64 { return n }))
	flow.To(in, "discard", flow.Discard[int64]())
	return nil
}
