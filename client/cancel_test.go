package client_test

import (
	"context"
	"testing"

	"github.com/weirflow/weir/client"
	"github.com/weirflow/weir/rpc"
)

// forgetful is a cluster whose leader is lost with the first cancellation.
type forgetful struct {
	rpc.ClientGateway
	cancelled int
	asked     int
}

func (f *forgetful) Cancel(context.Context, string) error {
	f.cancelled++
	return nil
}

func (f *forgetful) Get(context.Context, string) (rpc.JobDetail, error) {
	f.asked++
	status := rpc.JobRunning
	switch {
	case f.asked == 2:
		return rpc.JobDetail{}, &rpc.Error{Code: rpc.CodeUnavailable, Message: "starting"}
	case f.cancelled > 1 && f.asked < 5:
		status = rpc.JobCancelling
	case f.cancelled > 1:
		status = rpc.JobCanceled
	}
	return rpc.JobDetail{JobSummary: rpc.JobSummary{Status: status}}, nil
}

func TestCancellationThatWasForgottenIsRepeated(t *testing.T) {
	t.Parallel()
	f := &forgetful{}
	var shown []rpc.JobStatus
	d, err := client.CancelAndAwait(t.Context(), f, "j", func(d rpc.JobDetail) { shown = append(shown, d.Status) })
	if err != nil || d.Status != rpc.JobCanceled || f.cancelled != 2 || len(shown) != f.asked-1 {
		t.Errorf("it is %s after %d cancellations, %v were shown: %v", d.Status, f.cancelled, shown, err)
	}
}
