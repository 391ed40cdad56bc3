package execgraph

// State is the state of an attempt.
type State uint8

// States of an attempt, in the order in which it may pass through them. The last
// three are final.
const (
	Created      State = iota // has a number, waits for a slot
	Scheduled                 // has a slot
	Deploying                 // was sent to its TaskManager
	Initializing              // restores its state
	Running                   // processes records
	Canceling                 // was told to stop
	Finished
	Canceled
	Failed
)

var stateNames = [...]string{"CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING", "CANCELING", "FINISHED", "CANCELED", "FAILED"}

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "UNKNOWN"
}

// Final says whether the attempt has ended.
func (s State) Final() bool { return s >= Finished }

// Deployed says whether a TaskManager may be executing the attempt.
func (s State) Deployed() bool { return s >= Deploying && !s.Final() }

// after returns the state that an attempt in state s takes when its TaskManager
// reports r, and whether the report is legal.
func (s State) after(r State) (next State, ok bool) {
	switch {
	case !s.Deployed():
		return s, false
	case s == Canceling:
		return Canceled, r.Final() // whatever it became, it was cancelled
	case r == Canceled:
		return Failed, true // nobody asked for it
	case r == Canceling || r <= s:
		return s, false
	default:
		return r, true
	}
}
