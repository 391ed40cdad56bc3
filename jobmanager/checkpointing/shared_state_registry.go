package checkpointing

import (
	"slices"
	"strings"

	"github.com/weirflow/weir"
)

// SharedStateRegistry knows which files of a job's shared directory are in use, and by
// which snapshot last (behaviour §7). A file's name is its key: names are never reused,
// so that two handles of one name are the same bytes. Only its coordinator calls it.
type SharedStateRegistry struct{ files map[string]*sharedFile }

// sharedFile is a file in use.
type sharedFile struct {
	last weir.CheckpointID // the newest that names it
	keep bool              // it is another's: never deleted by us
}

// NewSharedStateRegistry returns an empty one.
func NewSharedStateRegistry() *SharedStateRegistry {
	return &SharedStateRegistry{files: map[string]*sharedFile{}}
}

// Len is the number of files in use.
func (r *SharedStateRegistry) Len() int { return len(r.files) }

// Register notes that a snapshot names the shared files of a state, and returns how many
// bytes of it lie in files that were known before. It comes before anything else is done
// with an acknowledgement, also one that comes late: the next snapshot of that task may
// build on the files.
func (r *SharedStateRegistry) Register(id weir.CheckpointID, s weir.TaskStateSnapshot) (known int64) {
	for h := range handles(s) {
		if strings.HasPrefix(h.File, sharedPrefix) && r.use(id, h.File) {
			known += h.Length
		}
	}
	return known
}

// use says whether the file was known before.
func (r *SharedStateRegistry) use(id weir.CheckpointID, name string) (known bool) {
	f, known := r.files[name]
	if !known {
		f = &sharedFile{}
		r.files[name] = f
	}
	f.last = max(f.last, id)
	return known
}

// Restore notes the files of a snapshot that is retained already. Those of one that is
// not ours are never deleted.
func (r *SharedStateRegistry) Restore(c CompletedCheckpoint) {
	for _, name := range c.Shared {
		r.use(c.ID, name)
		if c.Foreign && !c.Owned {
			r.files[name].keep = true
		}
	}
}

// Unregister forgets the files that no snapshot from lowest on names, and returns those
// to be deleted, sorted. lowest is the oldest that is retained; what is pending is newer.
func (r *SharedStateRegistry) Unregister(lowest weir.CheckpointID) (unused []string) {
	for name, f := range r.files {
		if f.last < lowest {
			delete(r.files, name)
			if !f.keep {
				unused = append(unused, name)
			}
		}
	}
	slices.Sort(unused)
	return unused
}
