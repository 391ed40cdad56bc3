package grpc

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/weirflow/weir/proto/clientpb"
	"github.com/weirflow/weir/rpc"
)

func TestCheckpointListsSurviveTheWire(t *testing.T) {
	t.Parallel()
	f := filler{rand.New(rand.NewPCG(8, 8))}
	for range 20 {
		var l rpc.CheckpointList
		f.fill(reflect.ValueOf(&l).Elem())
		for _, c := range append(l.Recent, *l.Latest.Completed, *l.Latest.Failed) {
			for i := range c.Vertices {
				c.Vertices[i].Slowest -= 2 // may be -1
			}
		}
		q := &clientpb.CheckpointList{}
		wire(t, checkpointListPB(l), q)
		if got, err := checkpointListOf(q); err != nil || !reflect.DeepEqual(got, l) {
			t.Fatalf("%v\nsent %+v\ngot  %+v", err, l, got)
		}
	}
	q := checkpointListPB(rpc.CheckpointList{Recent: []rpc.CheckpointInfo{{Steps: []rpc.StepTime{{Step: 77}}}}})
	if l, err := checkpointListOf(q); err == nil {
		t.Errorf("taken: %+v", l)
	}
}
