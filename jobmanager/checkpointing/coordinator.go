package checkpointing

import (
	"math/rand/v2"
	"time"

	"github.com/weirflow/weir"
)

// Config is what a coordinator is made of.
type Config struct {
	Job weir.JobID
	// Options are valid.
	Options Options
	// Operators are those with a coordinator (sources), in order of the graph.
	Operators []weir.OperatorID
	// Rand draws the first periodic delay; required.
	Rand *rand.Rand
}

// CheckpointCoordinator is the machine of one job's checkpoints. Only the job's
// loop calls it.
type CheckpointCoordinator struct {
	config Config
}

// New returns a coordinator that has done nothing yet.
func New(c Config) *CheckpointCoordinator { return &CheckpointCoordinator{config: c} }

// Step takes an event and returns what to do, in order.
func (c *CheckpointCoordinator) Step(now time.Time, ev Event) []Action { return nil }

// Latest is what a restore resumes from, if there is anything. While Linking it
// may be about to change.
func (c *CheckpointCoordinator) Latest() (CompletedCheckpoint, bool) {
	return CompletedCheckpoint{}, false
}

// Linking says that a link is being added and its end is not known. A restore
// must wait for LinkSettled: the checkpoint may be complete already.
func (c *CheckpointCoordinator) Linking() bool { return false }

// Statistics is a copy for outsiders.
func (c *CheckpointCoordinator) Statistics(now time.Time) Statistics { return Statistics{} }
