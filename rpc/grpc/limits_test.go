package grpc

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/rpc"
)

// Messages beyond gRPC's default of 4 MiB arrive, both ways; those beyond our bound are
// refused and harm nothing (field report B62).
func TestLargeMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard int
		c := serve(t, &listener{}, gateway{submit: func(r rpc.SubmitRequest) (rpc.SubmitReply, error) {
			heard = len(r.Params["p"])
			return rpc.SubmitReply{Name: strings.Repeat("n", heard)}, nil
		}})
		cl, err := NewClient("passthrough:a", insecure.NewCredentials(), c.dial)
		if err != nil {
			t.Fatal(err)
		}
		submit := func(size int) (rpc.SubmitReply, error) {
			return cl.Submit(t.Context(), rpc.SubmitRequest{Params: map[string]string{"p": strings.Repeat("p", size)}})
		}
		const large = 10 << 20
		if r, err := submit(large); err != nil || heard != large || len(r.Name) != large {
			t.Errorf("%d bytes sent, %d arrived, %d came back, %v", large, heard, len(r.Name), err)
		}
		heard = 0
		if _, err := submit(MaxMessageSize); err == nil || heard != 0 || !strings.Contains(err.Error(), "larger than max") {
			t.Errorf("too large: %v, %d arrived", err, heard)
		}
		if r, err := submit(1); err != nil || len(r.Name) != 1 {
			t.Errorf("afterwards: %v", err)
		}
		if err := cl.Close(); err != nil {
			t.Error(err)
		}
		c.stop()
	})
}

// What we send to find dead peers must be what we allow (B59).
func TestOwnPingsAreAllowed(t *testing.T) {
	t.Parallel()
	const leastOfGRPC = 10 * time.Second // a shorter time is raised to it, silently
	for _, every := range []time.Duration{clientKeepalive.Time, serverKeepalive.Time} {
		if every < leastOfGRPC || every < 2*keepaliveEnforcement.MinTime {
			t.Errorf("a ping every %s, but at most one per %s is allowed", every, keepaliveEnforcement.MinTime)
		}
	}
	if !clientKeepalive.PermitWithoutStream || !keepaliveEnforcement.PermitWithoutStream {
		t.Error("an idle connection must be pinged, and may be")
	}
	if clientKeepalive.Timeout == 0 || serverKeepalive.Timeout == 0 {
		t.Error("a dead peer is never found")
	}
}

// TestLargeSessionMessages (B62): a graph of 10 MiB and 20,000 state handles pass, and what is too
// large ends no session: the checkpoint is declined.
func TestLargeSessionMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jm, tm := &listener{}, &listener{}
		c := serve(t, jm, gateway{})
		s, err := c.dialer().Dial(t.Context(), tm)
		if err != nil {
			t.Fatal(err)
		}
		a := weir.AttemptID{Job: weir.JobID{1}, N: 1}
		say := func(handles, inline int) rpc.Message {
			t.Helper()
			op := weir.OperatorSubtaskState{Name: "op"}
			for range handles {
				op.Elements = append(op.Elements, weir.StateHandle{File: strings.Repeat("f", 60), Length: 1 << 20, CRC: 7})
			}
			for range inline {
				op.Elements = append(op.Elements, weir.StateHandle{Inline: make([]byte, 20<<10)})
			}
			jm.heard = nil
			if err := s.Send(rpc.AcknowledgeCheckpoint{Attempt: a, Checkpoint: 3, State: weir.TaskStateSnapshot{Operators: []weir.OperatorSubtaskState{op}}}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if len(jm.heard) != 1 || len(jm.closed) != 0 {
				t.Fatalf("heard %d messages, closed by %v", len(jm.heard), jm.closed)
			}
			return jm.heard[0]
		}
		if ack, ok := say(20_000, 0).(rpc.AcknowledgeCheckpoint); !ok || len(ack.State.Operators[0].Elements) != 20_000 {
			t.Errorf("20,000 handles: %T", ack)
		}
		restored := jm.heard[0].(rpc.AcknowledgeCheckpoint).State.Operators
		d, ok := say(0, MaxMessageSize/20/1024+1).(rpc.DeclineCheckpoint)
		if !ok || d.Checkpoint != 3 || d.Attempt != a || !strings.Contains(d.Message, "data-inline-threshold") {
			t.Errorf("too large: %+v", d)
		}
		if _, ok := say(1, 1).(rpc.AcknowledgeCheckpoint); !ok {
			t.Error("afterwards: no acknowledgement")
		}

		const graph = 10 << 20
		deployed := rpc.TaskDeployment{Attempt: a, GraphText: strings.Repeat("g", graph), Restore: restored}
		deployed.Graph.Vertices = []jobgraph.Vertex{{Operators: []string{"op"}, IDs: make([]weir.OperatorID, 1), Parallelism: 1, MaxParallelism: 1}}
		if err := jm.sess.Send(rpc.Deploy{Deployment: deployed}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(tm.heard) != 1 || len(tm.heard[0].(rpc.Deploy).Deployment.GraphText) != graph {
			t.Errorf("a large graph: heard %d messages, closed by %v", len(tm.heard), tm.closed)
		}
		c.stop()
	})
}
