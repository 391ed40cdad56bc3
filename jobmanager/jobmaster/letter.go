package jobmaster

import (
	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobmanager/checkpointing/store"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/jobmanager/resource"
	"github.com/weirflow/weir/rpc"
)

// Slots is what a job asks of the table of TaskManagers. Calls do not wait.
type Slots interface {
	// Request asks for slots; see RequestSlots. Answers: [JobMaster.Granted] and
	// [JobMaster.Short].
	Request(job weir.JobID, codeID string, n uint64, wants []weir.TaskManagerID)
	// Return gives back slots that came too late.
	Return(job weir.JobID, slots []resource.Slot)
	// Release gives back all slots of the job.
	Release(job weir.JobID)
}

// Grant is a slot with the session to its TaskManager.
type Grant struct {
	resource.Slot
	DataAddress string
	Host        string // for people
	Session     rpc.Session
}

// letter is what is posted to a job's loop.
//
//sumtype:decl
type letter interface{ letter() }

type (
	// happened is an event for the core.
	happened struct{ event Event }
	// loaded says that the job's body and chain were read.
	loaded struct {
		spec       *Spec
		submission *Submission
		chain      *store.Chain
		start      Start
		stop       *ha.Stop // that was asked for last, or nil
	}
	// notLoaded says why they are not there yet.
	notLoaded struct{ reason string }
	// unloadable says that they never can be.
	unloadable struct{ failure weir.Failure }
	// granted is the answer to a request for slots.
	granted struct {
		n      uint64
		grants []Grant
	}
	// lost says that a TaskManager is gone.
	lost struct {
		id          weir.TaskManagerID
		incarnation weir.Incarnation
		reason      string
	}
	// received is a message of a TaskManager about one of the job's attempts.
	received struct {
		session rpc.Session
		message rpc.Message
	}
	// figures are live figures of attempts.
	figures struct{ stats []rpc.TaskStats }
	// cancelled asks for the job's end.
	cancelled struct{}
	// snapshotAsked and stopAsked want a snapshot, and the job's end with one. The
	// channels have room for the answer.
	snapshotAsked struct {
		event SnapshotRequested
		reply chan<- SnapshotEnded
	}
	stopAsked struct {
		stop  Stop
		reply chan<- StopEnded
	}
	// ask wants a view.
	ask struct{ reply chan<- Report }
	// effectDone says that a call on a pool has ended, with an event for the core or nil.
	effectDone struct{ event Event }
	// statusWritten says how writing the status ended.
	statusWritten struct {
		terminal bool
		err      error
	}
	// statusRetry says that it is time to try again.
	statusRetry struct{}
)

func (happened) letter()      {}
func (loaded) letter()        {}
func (notLoaded) letter()     {}
func (unloadable) letter()    {}
func (granted) letter()       {}
func (lost) letter()          {}
func (received) letter()      {}
func (figures) letter()       {}
func (cancelled) letter()     {}
func (snapshotAsked) letter() {}
func (stopAsked) letter()     {}
func (ask) letter()           {}
func (effectDone) letter()    {}
func (statusWritten) letter() {}
func (statusRetry) letter()   {}
