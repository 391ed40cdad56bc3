package weir

import (
	"cmp"
	"slices"
)

// Redistribute assigns the old state of one operator to newParallelism new
// subtasks (behaviour §21.1, §21.2). old[i] is what old subtask i had put into the
// snapshot; result[i] is what new subtask i starts from.
//
// Keyed state goes to the owners of its key groups: with unchanged parallelism the
// handles stay where they were, else each handle is given to every new subtask
// whose range it touches, with its Range narrowed to what that subtask is to read.
// Elements are dealt out in order (SPLIT), but only if parallelism changed;
// otherwise they stay where they were, however uneven.
//
// It is a pure function: nothing is lost, nothing is doubled.
func Redistribute(old []OperatorSubtaskState, maxParallelism, newParallelism int) []OperatorSubtaskState {
	if len(old) == newParallelism {
		return slices.Clone(old)
	}
	result := make([]OperatorSubtaskState, newParallelism)
	id, name, schemas := describe(old)
	elements := make([][]StateHandle, len(old))
	var keyed []KeyedStateHandle
	for i, o := range old {
		elements[i] = o.Elements
		keyed = append(keyed, o.Keyed...)
	}
	dealt := DealElements([][][]StateHandle{elements}, newParallelism)[0]
	for i := range result {
		result[i] = OperatorSubtaskState{
			Operator: id,
			Name:     name,
			Keyed:    narrow(keyed, KeyGroupRangeOf(maxParallelism, newParallelism, i)),
			Elements: dealt[i],
			Schemas:  schemas,
		}
	}
	return result
}

// describe finds what is said once per operator.
func describe(old []OperatorSubtaskState) (id OperatorID, name string, schemas []StateSchema) {
	for _, o := range old {
		if id == (OperatorID{}) {
			id, name = o.Operator, o.Name
		}
		if len(o.Schemas) > len(schemas) {
			schemas = o.Schemas
		}
	}
	return id, name, schemas
}

// narrow returns the part of the handles that lies in want, in order of key groups.
func narrow(handles []KeyedStateHandle, want KeyGroupRange) []KeyedStateHandle {
	var part []KeyedStateHandle
	for _, h := range handles {
		if both := h.Range.Intersect(want); both.Len() > 0 {
			h.Range = both
			part = append(part, h)
		}
	}
	slices.SortStableFunc(part, func(a, b KeyedStateHandle) int { return cmp.Compare(a.Range.First, b.Range.First) })
	return part
}

// DealElements deals the elements of several lists to n new subtasks (behaviour
// §21.2, SPLIT). lists[s][i] is what old subtask i held of list s, and
// result[s][j] what new subtask j gets of it. Of the T elements of a list each new
// subtask gets T div n, in order, and T mod n of them one more; which ones rotates:
// a list begins where the one before it ran out of extra elements, so that no
// subtask gets all of the remainders.
func DealElements[E any](lists [][][]E, n int) [][][]E {
	result := make([][][]E, len(lists))
	start := 0
	for s, old := range lists {
		all := slices.Concat(old...)
		share, extra := len(all)/n, len(all)%n
		result[s] = make([][]E, n)
		for k := range n {
			size := share
			if k < extra {
				size++
			}
			result[s][(start+k)%n], all = all[:size:size], all[size:]
		}
		start = (start + extra) % n
	}
	return result
}
