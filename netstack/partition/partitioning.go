package partition

// Partitioning says how a record chooses its subpartition.
type Partitioning uint8

// Partitionings.
const (
	Forward   Partitioning = iota // there is one subpartition
	Hash                          // by the key group of the record's hash
	Rebalance                     // round robin
	Rescale                       // round robin; the subpartitions are a part of the consumers
	Broadcast                     // every record to every subpartition
	Custom                        // the caller says: EmitTo
)

var partitioningNames = [...]string{"forward", "hash", "rebalance", "rescale", "broadcast", "custom"}

func (p Partitioning) String() string {
	if int(p) < len(partitioningNames) {
		return partitioningNames[p]
	}
	return "unknown"
}
