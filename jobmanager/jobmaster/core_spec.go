package jobmaster

import (
	"math/rand/v2"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/jobmanager/joboption"
)

// Spec is what a job is, under one leader. It never changes.
type Spec struct {
	Job        weir.JobID
	Name       string
	Epoch      weir.LeaderEpoch
	Entrypoint string
	Params     map[string]string
	CodeID     string // of the TaskManagers that may run it
	Graph      *jobgraph.JobGraph
	GraphText  string // canonical text of the logical graph
	Settings   joboption.Settings
	// Start says what the job was started from, and why, for people.
	Start string
	// Directory is the job's in the checkpoint store.
	Directory string
	// Rand draws the delay of the first checkpoint.
	Rand *rand.Rand
}

// source is an operator with a coordinator.
type source struct {
	id     weir.OperatorID
	name   string
	vertex int
}

// sources returns the operators with a coordinator in order of the graph: the head
// of each chain that begins with a source.
func (s *Spec) sources() []source {
	var list []source
	for i := range s.Graph.Vertices {
		if v := &s.Graph.Vertices[i]; v.Source {
			list = append(list, source{id: v.IDs[0], name: v.Operators[0], vertex: i})
		}
	}
	return list
}
