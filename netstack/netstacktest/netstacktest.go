package netstacktest

import (
	"context"
	"fmt"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/netstack"
	"github.com/weirflow/weir/netstack/link"
)

// Net is a network of stacks: number i has TaskManagerID {i + 1} and host "h<i>".
type Net struct {
	Memory *link.Memory
	Stacks []*netstack.Stack
	At     []netstack.Location
}

// New starts n stacks. configure, if not nil, changes the options of each: by default
// they have 64 segments of memory.
func New(t testing.TB, n int, courier link.Courier, configure func(i int, o *netstack.Options)) *Net {
	t.Helper()
	net := &Net{Memory: link.NewMemory(courier)}
	for i := range n {
		host := fmt.Sprintf("h%d", i)
		o := netstack.Options{
			TaskManager: weir.TaskManagerID{byte(i + 1)},
			Incarnation: weir.Incarnation(100 + i),
			Cluster:     "test",
			Listen:      host + ":0",
			Transport:   net.Memory.Host(host),
			Memory:      64 << 15,
		}
		if configure != nil {
			configure(i, &o)
		}
		s := Start(t, o)
		net.Stacks = append(net.Stacks, s)
		net.At = append(net.At, netstack.Location{TaskManager: o.TaskManager, Incarnation: o.Incarnation, Address: s.Address()})
	}
	return net
}

// Start starts one stack, and closes it at the end of the test.
func Start(t testing.TB, o netstack.Options) *netstack.Stack {
	t.Helper()
	s, err := netstack.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Errorf("close stack of %s: %v", o.TaskManager, err)
		}
	})
	return s
}

// Attempt is attempt n of a subtask of a vertex of job {job}, deployed in epoch 1.
func Attempt(job byte, vertex, subtask, n int) weir.AttemptID {
	return weir.AttemptID{Job: weir.JobID{job}, Vertex: int32(vertex), Subtask: int32(subtask), Epoch: 1, N: int32(n)}
}
