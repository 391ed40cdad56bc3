package ha

import (
	"errors"
	"fmt"
)

// Errors of a [Registry].
var (
	// ErrNotLeader refuses a write: the epoch it is guarded by is over. It never
	// becomes valid again.
	ErrNotLeader = errors.New("not the leader any more")
	// ErrDoubtful is returned by a write that got no answer: it may have been
	// applied, may be applied later, or never. See [Settle].
	ErrDoubtful = errors.New("no answer: the write may have been applied")
	// ErrNotFound is returned by Get when the key does not exist.
	ErrNotFound = errors.New("key not found")
	// ErrNoLeader is returned by Leader while nobody leads.
	ErrNoLeader = errors.New("nobody leads")
	// ErrUnavailable is returned by reads and campaigns that got no answer.
	ErrUnavailable = errors.New("registry unavailable")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("registry closed")
	// ErrTooLarge refuses a value or transaction over the limits.
	ErrTooLarge = errors.New("too large for the registry")
	// ErrBadKey refuses a key that belongs to the election or occurs twice.
	ErrBadKey = errors.New("bad key")
)

// Errors of a [JobStore].
var (
	// ErrNameTaken refuses a submit: another live job, from another request, has the
	// name. See [NameTakenError].
	ErrNameTaken = errors.New("job name taken")
	// ErrRequestReused refuses a submit whose request id was used for a job of another name.
	ErrRequestReused = errors.New("request id was used for another job")
	// ErrNoJob is returned when no such job is recorded.
	ErrNoJob = errors.New("no such job")
	// ErrTerminal refuses to change a job that has ended.
	ErrTerminal = errors.New("job has ended")
	// ErrLive refuses to remove a job that has not ended.
	ErrLive = errors.New("job has not ended")
	// ErrOvertaken is returned when the chain holds another link than the one that
	// was to be added: somebody else leads, or did. The job must be resolved anew
	// from its chain.
	ErrOvertaken = errors.New("overtaken: the chain has another link")
	// ErrNewestLink refuses to remove the link that a restart would resume from.
	ErrNewestLink = errors.New("the newest link is not removed")
	// ErrCorrupt is returned when a value read from the registry is not one of ours.
	ErrCorrupt = errors.New("corrupt registry value")
)

// ConflictError refuses a transaction: a key did not have the expected revision.
type ConflictError struct {
	Key    string
	Want   Revision // 0: the key was to be absent
	Actual *KV      // what was there instead; nil: the key is absent
}

func (e *ConflictError) Error() string {
	want := "absent"
	if e.Want != 0 {
		want = fmt.Sprintf("at revision %d", e.Want)
	}
	if e.Actual == nil {
		return fmt.Sprintf("key %q: want it %s, it is absent", e.Key, want)
	}
	return fmt.Sprintf("key %q: want it %s, it is at revision %d", e.Key, want, e.Actual.ModRevision)
}

// NameTakenError says which job holds the name. It is an [ErrNameTaken].
type NameTakenError struct {
	Holder JobRecord
}

func (e *NameTakenError) Error() string {
	return fmt.Sprintf("job name %q is taken by job %s", e.Holder.Name, e.Holder.Job)
}

// Is makes errors.Is(err, ErrNameTaken) true.
func (e *NameTakenError) Is(target error) bool { return target == ErrNameTaken }
