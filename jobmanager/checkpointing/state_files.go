package checkpointing

import (
	"iter"
	"strings"

	"github.com/weirflow/weir"
)

// sharedPrefix begins the names of files that several checkpoints use.
const sharedPrefix = "shared/"

// handles yields every handle of a state.
func handles(s weir.TaskStateSnapshot) iter.Seq[weir.StateHandle] {
	return func(yield func(weir.StateHandle) bool) {
		for i := range s.Operators {
			op := &s.Operators[i]
			for j := range op.Keyed {
				if !yield(op.Keyed[j].Handle) {
					return
				}
			}
			for j := range op.Elements {
				if !yield(op.Elements[j]) {
					return
				}
			}
		}
		for i := range s.Channels {
			if !yield(s.Channels[i].Handle) {
				return
			}
		}
	}
}

// hasFiles says whether any of the state lies in files.
func hasFiles(s weir.TaskStateSnapshot) bool {
	for h := range handles(s) {
		if h.File != "" {
			return true
		}
	}
	return false
}

// liesIn says whether all files of the state are in this directory, or shared.
func liesIn(s weir.TaskStateSnapshot, dir string) bool {
	for h := range handles(s) {
		if h.File != "" && !strings.HasPrefix(h.File, dir) && !strings.HasPrefix(h.File, sharedPrefix) {
			return false
		}
	}
	return true
}
