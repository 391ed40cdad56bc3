package grpc

import (
	"context"
	"math/rand/v2"
	"reflect"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/rpc"
)

// snapshots answers calls about snapshots, and keeps what was asked.
type snapshots struct {
	rpc.ClientGateway
	asked    rpc.SnapshotRequest
	answered rpc.SnapshotReply
	stop     rpc.StopRequest
	stopped  rpc.StopReply
	interval rpc.IntervalRequest
}

func (s *snapshots) CheckpointInterval(_ context.Context, r rpc.IntervalRequest) (rpc.IntervalReply, error) {
	s.interval = r
	return rpc.IntervalReply{Interval: 2 * r.Interval}, nil
}

func (s *snapshots) TakeSnapshot(_ context.Context, r rpc.SnapshotRequest) (rpc.SnapshotReply, error) {
	s.asked = r
	return s.answered, nil
}

func (s *snapshots) StopJob(_ context.Context, r rpc.StopRequest) (rpc.StopReply, error) {
	s.stop = r
	return s.stopped, nil
}

func TestSnapshotCallsCrossUnchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := filler{rand.New(rand.NewPCG(1, 2))}
		gw := &snapshots{}
		f.fill(reflect.ValueOf(&gw.answered).Elem())
		f.fill(reflect.ValueOf(&gw.stopped).Elem())
		gw.stopped.Status = rpc.JobRestarting
		c := serve(t, &listener{}, gw)
		cl, err := NewClient("passthrough:a", insecure.NewCredentials(), c.dial)
		if err != nil {
			t.Fatal(err)
		}
		ask := rpc.SnapshotRequest{Job: "j", RequestID: "r", Kind: weir.NativeSavepoint, Target: "t"}
		if got, err := cl.TakeSnapshot(t.Context(), ask); err != nil || got != gw.answered || gw.asked != ask {
			t.Errorf("asked %+v, answered %+v, %v", gw.asked, got, err)
		}
		stop := rpc.StopRequest{Job: "j", RequestID: "r", Drain: true, Target: "t"}
		if got, err := cl.StopJob(t.Context(), stop); err != nil || got != gw.stopped || gw.stop != stop {
			t.Errorf("asked %+v, answered %+v, %v", gw.stop, got, err)
		}
		interval := rpc.IntervalRequest{Job: "j", Set: true, Interval: 7}
		if got, err := cl.CheckpointInterval(t.Context(), interval); err != nil || got.Interval != 14 || gw.interval != interval {
			t.Errorf("asked %+v, answered %+v, %v", gw.interval, got, err)
		}
		_, err = cl.TakeSnapshot(t.Context(), rpc.SnapshotRequest{Job: "j", Kind: weir.TerminateSavepoint})
		if rpc.CodeOf(err) != rpc.CodeInvalidArgument {
			t.Errorf("a kind that cannot be asked for: %v", err)
		}
		if err := cl.Close(); err != nil {
			t.Error(err)
		}
		c.stop()
	})
}
