package client_test

import (
	"context"
	"testing"
	"time"

	"github.com/weirflow/weir/client"
	"github.com/weirflow/weir/rpc"
)

func (j *jobManager) StopJob(ctx context.Context, r rpc.StopRequest) (rpc.StopReply, error) {
	d, err := j.Get(ctx, r.Job)
	return rpc.StopReply{Path: r.RequestID, Status: d.Status}, err
}

// TestStopIsAskedForUntilItIsAnswered: a stop that is under way outlasts the JobManager that
// was asked first.
func TestStopIsAskedForUntilItIsAnswered(t *testing.T) {
	jm := serve(t, func(_ context.Context, call int) (rpc.JobDetail, error) {
		switch call {
		case 1:
			return rpc.JobDetail{}, nil // the job is there
		case 2:
			return rpc.JobDetail{}, &rpc.Error{Code: rpc.CodeDeadlineExceeded, Message: "under way"}
		case 3:
			return rpc.JobDetail{}, &rpc.NotLeaderError{}
		case 4:
			return rpc.JobDetail{}, &rpc.Error{Code: rpc.CodeUnavailable, Message: "starting"}
		default:
			return rpc.JobDetail{JobSummary: rpc.JobSummary{Status: rpc.JobFinished}}, nil
		}
	})
	c := dial(t, client.Options{}, jm.address)
	r, err := c.StopJob(t.Context(), rpc.StopRequest{Job: "job", RequestID: "r1"})
	if err != nil || r.Path != "r1" || r.Status != rpc.JobFinished || jm.called() != 5 {
		t.Errorf("%+v, %v after %d calls", r, err, jm.called())
	}
}

func TestStopDoesNotWaitForNobody(t *testing.T) {
	jm := serve(t, func(context.Context, int) (rpc.JobDetail, error) {
		return rpc.JobDetail{}, &rpc.Error{Code: rpc.CodeUnavailable, Message: "starting"}
	})
	c := dial(t, client.Options{}, jm.address)
	if _, err := c.StopJob(t.Context(), rpc.StopRequest{Job: "job", RequestID: "r1"}); rpc.CodeOf(err) != rpc.CodeUnavailable || jm.called() != 1 {
		t.Errorf("%v after %d calls", err, jm.called())
	}
	jm.answer(func(_ context.Context, call int) (rpc.JobDetail, error) {
		if call == 2 {
			return rpc.JobDetail{}, nil
		}
		return rpc.JobDetail{}, &rpc.Error{Code: rpc.CodeDeadlineExceeded, Message: "under way"}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := c.StopJob(ctx, rpc.StopRequest{Job: "job", RequestID: "r1"}); err == nil {
		t.Error("no error when time is up")
	}
}
