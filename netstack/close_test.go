package netstack_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/netstack"
	"github.com/weirflow/weir/netstack/link"
)

// A peer that connects and says nothing must not hold up the end of the Stack until
// the time for its Hello is over.
func TestCloseDoesNotWaitForAHello(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := link.NewMemory(nil)
		s, err := netstack.New(netstack.Options{
			TaskManager: weir.TaskManagerID{1}, Incarnation: 1, Cluster: "c", Listen: "a:0",
			Transport: network.Host("a"), Memory: 1 << 20,
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		silent, err := network.Host("b").Dial(t.Context(), s.Address())
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		began := time.Now()
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("Close took %s", took)
		}
		silent.Close()
	})
}
