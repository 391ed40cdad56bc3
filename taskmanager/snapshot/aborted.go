package snapshot

import (
	"slices"

	"github.com/weirflow/weir"
)

// maxAborted is how many aborted checkpoints a task remembers (behaviour §8).
const maxAborted = 128

// abortedIDs remembers checkpoints that were aborted before their barriers came, in
// rising order.
type abortedIDs struct {
	ids     []weir.CheckpointID
	highest weir.CheckpointID // ever remembered
}

// add remembers an id; the oldest is forgotten when there are too many.
func (a *abortedIDs) add(id weir.CheckpointID) {
	a.highest = max(a.highest, id)
	i, found := slices.BinarySearch(a.ids, id)
	if found {
		return
	}
	a.ids = slices.Insert(a.ids, i, id)
	if len(a.ids) > maxAborted {
		a.ids = slices.Delete(a.ids, 0, 1)
	}
}

// take says whether id was aborted, and forgets it and all smaller ones. An id so old
// that it may have been forgotten counts as aborted.
func (a *abortedIDs) take(id weir.CheckpointID) bool {
	i, found := slices.BinarySearch(a.ids, id)
	if found {
		i++
	}
	a.ids = slices.Delete(a.ids, 0, i)
	return found || id+maxAborted < a.highest
}
