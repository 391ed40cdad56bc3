package checkpointing

import (
	"strings"

	"github.com/weirflow/weir"
)

// sharedPrefix begins the names of files that several checkpoints use.
const sharedPrefix = "shared/"

// eachHandle calls visit with every handle of a state, until it says stop.
func eachHandle(s *weir.TaskStateSnapshot, visit func(weir.StateHandle) (stop bool)) (stopped bool) {
	for i := range s.Operators {
		op := &s.Operators[i]
		for j := range op.Keyed {
			if visit(op.Keyed[j].Handle) {
				return true
			}
		}
		for j := range op.Elements {
			if visit(op.Elements[j]) {
				return true
			}
		}
	}
	for i := range s.Channels {
		if visit(s.Channels[i].Handle) {
			return true
		}
	}
	return false
}

// hasFiles says whether any of the state lies in files.
func hasFiles(s weir.TaskStateSnapshot) bool {
	return eachHandle(&s, func(h weir.StateHandle) bool { return h.File != "" })
}

// liesIn says whether all files of the state are in this directory, or shared.
func liesIn(s weir.TaskStateSnapshot, dir string) bool {
	return !eachHandle(&s, func(h weir.StateHandle) bool {
		return h.File != "" && !strings.HasPrefix(h.File, dir) && !strings.HasPrefix(h.File, sharedPrefix)
	})
}
