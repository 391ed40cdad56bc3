package joboption

import (
	"fmt"
	"strconv"

	"github.com/weirflow/weir"
)

// What a job may start from, beside the path of a snapshot.
const (
	// FromNone starts with nothing, on purpose.
	FromNone = "none"
	// FromLatest starts from the newest checkpoint of the last job of the same name.
	FromLatest = "latest"
)

// Recovery says what a job starts from and how (behaviour §11).
type Recovery struct {
	// Path of the snapshot, FromLatest, FromNone, or empty: nothing.
	Path string
	// Claim makes the snapshot the job's own: it is deleted when it is subsumed. Else
	// (NO_CLAIM, the default) it is never changed and never deleted.
	Claim bool
	// IgnoreUnclaimed lets the job start though the snapshot has state of operators that
	// the job does not have.
	IgnoreUnclaimed bool
	// WithoutChannelState is the id of the checkpoint whose in-flight data is dropped; 0:
	// none is.
	WithoutChannelState weir.CheckpointID
}

// DropsInFlight says whether in-flight data of this checkpoint is dropped.
func (r Recovery) DropsInFlight(id weir.CheckpointID) bool {
	return r.WithoutChannelState > 0 && id == r.WithoutChannelState
}

// KeyFrom, KeyClaimMode and KeyIgnoreUnclaimed are keys that flags are aliases of.
const (
	KeyFrom            = recoveryPrefix + "path"
	KeyClaimMode       = recoveryPrefix + "claim-mode"
	KeyIgnoreUnclaimed = recoveryPrefix + "ignore-unclaimed-state"

	recoveryPrefix = "execution.state-recovery."
	claim          = "CLAIM"
	noClaim        = "NO_CLAIM"
)

var recovery = []Key{
	{KeyClaimMode, noClaim + ", " + claim, noClaim,
		"Whose the snapshot is that the job starts from: with CLAIM the job's, which deletes it when newer ones replace it; with NO_CLAIM it is left alone, and the first checkpoint is a full one.",
		func(s *Settings, value string) error {
			switch value {
			case claim, noClaim:
				s.Recovery.Claim = value == claim
				return nil
			case "LEGACY":
				return fmt.Errorf("LEGACY is gone: %s leaves the snapshot alone, %s takes it over", noClaim, claim)
			}
			return fmt.Errorf("%q is none of %s, %s", value, claim, noClaim)
		}},
	{KeyIgnoreUnclaimed, "bool", "false",
		"Whether the job may start though the snapshot has state of operators that the job does not have. That state is lost with the next checkpoint.",
		boolean(func(s *Settings) *bool { return &s.Recovery.IgnoreUnclaimed })},
	{KeyFrom, "string", "[none]",
		"What the job starts from, as `--from`: the path of a checkpoint or savepoint, `latest` (the newest checkpoint of the last job of the same name), or `none`.",
		func(s *Settings, value string) error {
			const longest = 4096
			if len(value) > longest {
				return fmt.Errorf("a path of %d bytes, at most %d are allowed", len(value), longest)
			}
			s.Recovery.Path = value
			return nil
		}},
	{recoveryPrefix + "without-channel-state.checkpoint-id", "int", "-1",
		"The id of a checkpoint whose in-flight data is dropped when the job starts from it. It is for a checkpoint that cannot be restored otherwise: records are lost.",
		func(s *Settings, value string) error {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil || n < -1 || n == 0 {
				return fmt.Errorf("%q is neither a checkpoint id nor -1", value)
			}
			s.Recovery.WithoutChannelState = weir.CheckpointID(max(n, 0))
			return nil
		}},
}
