package jobgraph

import "github.com/weirflow/weir"

// ID names the edge in snapshots.
func (e *Edge) ID() weir.EdgeID {
	return weir.EdgeID{From: e.FromOperator, To: e.ToOperator, Input: int32(e.Input)}
}

// Consumers is the range of consumer subtasks that a producer's subtask has channels
// to, one subpartition each, in this order. Forward and Rescale reach a few: those
// whose share of the whole overlaps with the producer's.
func (p Partitioning) Consumers(producer, producers, consumers int) (first, last int) {
	return p.peers(producer, producers, consumers)
}

// Producers is the range of producer subtasks that a consumer's subtask reads: those
// that name it among their [Partitioning.Consumers].
func (p Partitioning) Producers(consumer, producers, consumers int) (first, last int) {
	return p.peers(consumer, consumers, producers)
}

// peers cuts the whole into equal shares on both sides: with Rescale, subtask i of m
// meets those of n whose shares overlap with [i/m, (i+1)/m).
func (p Partitioning) peers(i, m, n int) (first, last int) {
	switch p {
	case Forward:
		return i, i
	case Rescale:
		return i * n / m, ((i+1)*n - 1) / m
	}
	return 0, n - 1
}

// Subpartition is the index, among a producer's subpartitions, of the one that a
// consumer reads.
func (p Partitioning) Subpartition(producer, consumer, producers, consumers int) int {
	first, _ := p.Consumers(producer, producers, consumers)
	return consumer - first
}
