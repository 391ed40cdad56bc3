package daemon

import (
	"sync"

	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/blobstore/fs"
)

// foreignStores are the directories of other clusters' checkpoints that jobs have
// started from. Each is opened once, and again when another directory is there, and
// stays open: they are few, and somebody may still read from one that is gone.
type foreignStores struct {
	mu struct {
		sync.Mutex
		byLocation map[string]*fs.Store
	}
}

// open returns the store at a location, which must exist.
func (f *foreignStores) open(location string) (blobstore.Store, error) {
	if s := f.opened(location); s != nil {
		return s, nil
	}
	s, err := fs.OpenExisting(location)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.byLocation == nil {
		f.mu.byLocation = make(map[string]*fs.Store)
	}
	if first := f.mu.byLocation[location]; first != nil && !first.Gone() { // another was faster
		_ = s.Close()
		return first, nil
	}
	f.mu.byLocation[location] = s
	return s, nil
}

// opened returns nil if there is none, or it is gone.
func (f *foreignStores) opened(location string) *fs.Store {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.mu.byLocation[location]; s != nil && !s.Gone() {
		return s
	}
	return nil
}
