package weir

// PointwiseProducers returns the producers [first, last) that consumer i reads over
// a pointwise edge: each consumer has the producers [i·p/c, (i+1)·p/c), or, of fewer
// producers than consumers, producer i·p/c alone. With equal parallelism it is one to
// one.
func PointwiseProducers(producers, consumers, i int) (first, last int) {
	first = i * producers / consumers
	last = (i + 1) * producers / consumers
	return first, max(last, first+1)
}

// PointwiseConsumers returns the consumers [first, last) that read producer i over a
// pointwise edge: the inverse of [PointwiseProducers].
func PointwiseConsumers(producers, consumers, i int) (first, last int) {
	if producers >= consumers {
		first = ((i+1)*consumers - 1) / producers
		return first, first + 1
	}
	return ceilDiv(i*consumers, producers), ceilDiv((i+1)*consumers, producers)
}

// ChannelReader says which of newParallelism consumers recover the in-flight data of
// the old consumer (behaviour §21.3) over an edge on which any consumer may take any
// record: one, so that nothing is doubled.
func ChannelReader(oldConsumer, newParallelism int) int { return oldConsumer % newParallelism }

// KeyedChannelReaders says which consumers [first, last) recover the in-flight data of
// an old consumer (behaviour §21.3) over an edge that is partitioned by key: all whose
// key groups overlap with its own. Where these are several, each drops the records of
// key groups that are not its own. Old and new maximum parallelism may differ, since
// ranges are compared by the hashes that lie in them.
func KeyedChannelReaders(oldMax, oldParallelism, oldConsumer, newMax, newParallelism int) (first, last int) {
	low, high := hashesOf(oldMax, oldParallelism, oldConsumer)
	first = KeyGroupOwner(KeyGroupOf(low<<32, newMax), newMax, newParallelism)
	last = KeyGroupOwner(KeyGroupOf(high<<32, newMax), newMax, newParallelism)
	return first, last + 1
}

// hashesOf returns the first and the last value of the high 32 bits of a hash whose
// key group is of subtask i.
func hashesOf(maxParallelism, parallelism, i int) (first, last uint64) {
	r := KeyGroupRangeOf(maxParallelism, parallelism, i)
	// The group of h is h·max >> 32: group g begins at ceil(g·2³² / max).
	begin := func(g int32) uint64 {
		return (uint64(g)<<32 + uint64(maxParallelism) - 1) / uint64(maxParallelism)
	}
	return begin(r.First), begin(r.Last+1) - 1
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
