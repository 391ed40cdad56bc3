package planted

// Bug names one planted bug.
type Bug string

// Bugs.
const (
	// The data path.
	ResumeForgotten        Bug = "resume forgotten"         // a channel is not resumed after a barrier
	CreditTwice            Bug = "credit twice"             // a sender counts each announcement twice
	HalfRecordDropped      Bug = "half record dropped"      // of a record that spans segments
	BarrierOvertakes       Bug = "barrier overtakes"        // an aligned barrier is queued before the records
	AlignmentSkipped       Bug = "alignment skipped"        // the first barrier triggers
	SuspendedRecordSkipped Bug = "suspended record skipped" // a suspended batch goes on one record too far

	// What is in flight.
	OvertakenOneLess Bug = "overtaken one less" // of the segments that a barrier overtakes at the producer
	QueuedOneLess    Bug = "queued one less"    // of the segments that a barrier left behind at the consumer
	QueuedTooMany    Bug = "queued too many"    // those behind the barrier are captured too
	BatchNotCaptured Bug = "batch not captured" // the suspended rest of a batch
	HalfNotCaptured  Bug = "half not captured"  // the beginning of a record that was cut off
	AnnouncementLost Bug = "announcement lost"  // of a barrier that stands behind data
	ChunkDropped     Bug = "chunk dropped"      // the last of a channel is not written
	RecoveredByAll   Bug = "recovered by all"   // consumers do not look at key groups
	FilterOffByOne   Bug = "filter off by one"  // they take one key group more than is theirs

	// State and snapshots.
	SnapshotNotCopied          Bug = "snapshot not copied"          // pages are written while a snapshot holds them
	AcknowledgedBeforeUploaded Bug = "acknowledged before uploaded" // the state file is not there yet
	KeyGroupSkipped            Bug = "key group skipped"            // when a task restores
	TimersNotRestored          Bug = "timers not restored"          // they lie in the state, and never fire
	ElementsDealtTwice         Bug = "elements dealt twice"         // to a subtask more, when parallelism changes
	KeyGroupsNotDealt          Bug = "key groups not dealt"         // those of all former subtasks but one
	SplitsReassigned           Bug = "splits reassigned"            // on restore, besides those in the snapshot

	// Tasks and TaskManagers.
	BuffersLost       Bug = "buffers lost"        // that lay in a channel when its task ended
	OldEpochObeyed    Bug = "old epoch obeyed"    // a leader that was overtaken deploys
	OlderNotCancelled Bug = "older not cancelled" // what an older leader started runs on

	// Deciding.
	NotifiedBeforeLink  Bug = "notified before link"   // tasks hear of completion while the link is being added
	CompletedOneEarly   Bug = "completed one early"    // without the last acknowledgement
	AttemptReused       Bug = "attempt number reused"  // a restart counts on from the same number
	IDsRepeat           Bug = "checkpoint ids repeat"  // counted by the leader, not by the registry
	RestoredFromOldest  Bug = "restored from oldest"   // of the retained checkpoints
	LinkNotAwaited      Bug = "link not awaited"       // a restart does not wait for the end of a link
	LostAnswerIsRefusal Bug = "lost answer is refusal" // a link whose answer was lost counts as failed
	LinkNotRemoved      Bug = "link not removed"       // before the files of its checkpoint are

	// Savepoints, stops and ends.
	LastNotAwaited   Bug = "last checkpoint not awaited" // a task ends when its data does
	SavepointDeleted Bug = "savepoint deleted"           // with its link, when a newer one is complete
	StopNotRecorded  Bug = "stop not recorded"           // another leader knows nothing of it
)

// Bugs are all of them.
var Bugs = []Bug{
	ResumeForgotten, CreditTwice, HalfRecordDropped, BarrierOvertakes, AlignmentSkipped, SuspendedRecordSkipped,
	OvertakenOneLess, QueuedOneLess, QueuedTooMany, BatchNotCaptured, HalfNotCaptured, AnnouncementLost, ChunkDropped, RecoveredByAll, FilterOffByOne,
	SnapshotNotCopied, AcknowledgedBeforeUploaded, KeyGroupSkipped, TimersNotRestored, SplitsReassigned,
	ElementsDealtTwice, KeyGroupsNotDealt,
	BuffersLost, OldEpochObeyed, OlderNotCancelled,
	NotifiedBeforeLink, CompletedOneEarly, AttemptReused, IDsRepeat, RestoredFromOldest, LinkNotAwaited,
	LostAnswerIsRefusal, LinkNotRemoved,
	LastNotAwaited, SavepointDeleted, StopNotRecorded,
}
