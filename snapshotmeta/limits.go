package snapshotmeta

// Limits of the formats. Whoever writes is refused above them, whoever reads
// compares before taking memory.
const (
	maxRecord      = 64 << 20 // bytes of one record
	maxHeader      = 16 << 20 // bytes of the header record
	maxVertices    = 10_000
	maxParallelism = 32768
	maxRecords     = 4_000_000 // subtask, coordinator and channel records of a file
	maxContents    = 16 << 20  // bytes of a state file's table of contents
	maxSections    = 100_000
	maxChunk       = 1 << 20  // bytes of one chunk of channel state
	maxInline      = 16 << 20 // bytes of one inline handle
)
