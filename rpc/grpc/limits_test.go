package grpc

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/credentials/insecure"

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
