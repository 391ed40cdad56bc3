package stoppoint

// Point is a place where a process can be stopped.
type Point string

// Points.
const (
	// Pending: a checkpoint was triggered at all sources and is not complete. It is
	// reached with each acknowledgement of a task, before it counts.
	Pending Point = "pending"
	// Linked: a checkpoint is a link of its job's chain, and nobody was told.
	Linked Point = "linked"
)

// Variable is the name of the environment variable that mains hand to [Arm].
const Variable = "WEIR_STOPPOINT"
