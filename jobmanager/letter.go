package jobmanager

import (
	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/jobmanager/jobmaster"
	"github.com/weirflow/weir/jobmanager/resource"
	"github.com/weirflow/weir/rpc"
)

// letter is what is posted to the dispatcher's loop.
//
//sumtype:decl
type letter interface{ letter() }

type (
	// heard is a message of a TaskManager.
	heard struct {
		session rpc.Session
		message rpc.Message
	}
	// hungUp says that a session has ended.
	hungUp struct {
		session rpc.Session
		cause   error
	}
	// adopt makes a recorded job ours: it is started unless it has ended. done, if
	// set, is closed when it is known to clients.
	adopt struct {
		job  ha.Job
		done chan<- struct{}
	}
	// jobEnded says that a job's final status is recorded.
	jobEnded struct {
		job   weir.JobID
		final jobmaster.Report
	}
	// slotEvent is a job's word to the table of TaskManagers.
	slotEvent struct{ event resource.Event }
	// beat says that it is time to look for silent TaskManagers.
	beat struct{}
	// ask reads the dispatcher's state on its loop. fn must not wait.
	ask struct{ fn func(d *dispatcher) }
)

func (heard) letter()     {}
func (hungUp) letter()    {}
func (adopt) letter()     {}
func (jobEnded) letter()  {}
func (slotEvent) letter() {}
func (beat) letter()      {}
func (ask) letter()       {}
