package grpc

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/proto/controlpb"
	"github.com/weirflow/weir/rpc"
)

// filler puts random legal values into a message, everywhere, so that a field that
// a conversion forgets shows as a difference.
type filler struct{ *rand.Rand }

func (f filler) fill(v reflect.Value) {
	switch x := v.Addr().Interface().(type) {
	case *time.Time:
		*x = time.UnixMilli(f.Int64N(1 << 40))
		return
	case *jobgraph.JobGraph:
		*x = f.graph()
		return
	case *weir.Fault:
		*x = weir.Fault(f.IntN(int(weir.FaultOutside) + 1))
		return
	case *weir.FailureReason:
		*x = weir.FailureReason(f.IntN(int(weir.TriggerCheckpointFailure) + 1))
		return
	case *weir.SnapshotKind:
		*x = weir.SnapshotKind(f.IntN(int(weir.TerminateSavepoint) + 1))
		return
	case *weir.Alignment:
		*x = weir.Alignment(f.IntN(int(weir.ForcedAligned) + 1))
		return
	case *rpc.CheckpointStatus:
		*x = rpc.CheckpointStatus(f.IntN(int(rpc.CheckpointFailed) + 1))
		return
	case *rpc.CheckpointStep:
		*x = rpc.CheckpointStep(f.IntN(int(rpc.StepNotified) + 1))
		return
	case *weir.LastBarrier:
		if *x = (weir.LastBarrier{}); f.IntN(3) > 0 {
			*x = weir.LastBarrier{Came: true, Input: f.Int32N(9), Channel: f.Int32N(9), Queued: f.Int64N(99)}
		}
		return
	case *rpc.TaskState:
		*x = rpc.TaskState(f.IntN(int(rpc.TaskFailed) + 1))
		return
	case *jobgraph.Partitioning:
		*x = jobgraph.Partitioning(f.IntN(int(jobgraph.Custom) + 1))
		return
	case *weir.ChannelSide:
		*x = weir.ChannelSide(f.IntN(int(weir.ProducerSide) + 1))
		return
	case *rpc.RecoveredChannel:
		// It names gates and channels of its deployment, of which there is at least one.
		*x = rpc.RecoveredChannel{Producer: f.Int32N(9), Consumer: f.Int32N(9), Channel: f.IntN(2) - 1, Filter: f.IntN(2) == 0}
		f.fill(reflect.ValueOf(&x.Captured).Elem())
		return
	case *weir.KeyGroupRange:
		*x = weir.KeyGroupRange{First: 3, Last: int32(3 + f.IntN(100))}
		return
	case *weir.StateHandle:
		*x = weir.StateHandle{File: "chk-1/f", Offset: f.Int64N(99), Length: f.Int64N(99), CRC: f.Uint32()}
		if f.IntN(3) == 0 {
			*x = weir.StateHandle{Inline: make([]byte, f.IntN(3))}
		}
		return
	}
	f.kind(v)
}

func (f filler) kind(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(string(rune('a'+f.IntN(26))) + "x")
	case reflect.Bool:
		v.SetBool(f.IntN(2) == 0)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1 + f.Int64N(1000))
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(f.Uint64N(256))
	case reflect.Float64:
		v.SetFloat(f.Float64())
	case reflect.Array:
		for i := range v.Len() {
			f.fill(v.Index(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1+f.IntN(3), 4))
		for i := range v.Len() {
			f.fill(v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 1 + f.IntN(3) {
			key, val := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.fill(key)
			f.fill(val)
			v.SetMapIndex(key, val)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(v.Field(i))
		}
	default:
		panic("filler: " + v.Type().String())
	}
}

func (f filler) graph() jobgraph.JobGraph {
	g := jobgraph.JobGraph{Name: "g"}
	for i := range g.Hash {
		g.Hash[i] = byte(f.IntN(256))
	}
	for i := range 2000 {
		ops := []string{string(rune('a' + i%26)), "op"}
		g.Vertices = append(g.Vertices, jobgraph.Vertex{
			Index: i, Name: "v", Operators: ops, IDs: []weir.OperatorID{weir.OperatorIDOf(ops[0]), weir.OperatorIDOf(ops[1])},
			Source: i == 0, Keyed: f.IntN(2) == 0, Parallelism: 1 + f.IntN(4), MaxParallelism: 128, MaxConfigured: f.IntN(2) == 0,
			Inputs: []int{0}, Outputs: []int{0},
		})
		if i == 1001 && f.IntN(2) == 0 {
			break // attempts name vertices up to 1000
		}
	}
	g.Edges = []jobgraph.Edge{{From: 0, To: 1, FromOperator: "a", ToOperator: "b", Input: 1, Side: "late", Partitioning: jobgraph.Hash}}
	return g
}

func TestMessagesSurviveTheWire(t *testing.T) {
	f := filler{rand.New(rand.NewPCG(7, 7))}
	toJM := []rpc.Message{rpc.Register{}, rpc.Heartbeat{}, rpc.TaskStateChanged{}, rpc.AcknowledgeCheckpoint{}, rpc.DeclineCheckpoint{}, rpc.BarrierSent{}, rpc.EndOfData{}, rpc.OperatorEvent{}, rpc.OperatorEventAck{}}
	toTM := []rpc.Message{rpc.Registered{}, rpc.Refused{}, rpc.Deploy{}, rpc.Cancel{}, rpc.TriggerCheckpoint{}, rpc.NotifyCheckpointComplete{}, rpc.NotifyCheckpointAborted{}, rpc.Forget{}, rpc.HeartbeatAck{}, rpc.OperatorEvent{}}
	for range 20 {
		for _, kind := range toJM {
			survives(t, f, kind, func(m rpc.Message) (rpc.Message, error) {
				p, err := toJobManager(m)
				if err != nil {
					return nil, err
				}
				q := &controlpb.ToJobManager{}
				wire(t, p, q)
				return fromTaskManager(q)
			})
		}
		for _, kind := range toTM {
			survives(t, f, kind, func(m rpc.Message) (rpc.Message, error) {
				p, err := toTaskManager(m)
				if err != nil {
					return nil, err
				}
				q := &controlpb.ToTaskManager{}
				wire(t, p, q)
				return fromJobManager(q)
			})
		}
	}
}

func wire(t *testing.T, from, to proto.Message) {
	b, err := proto.Marshal(from)
	if err == nil {
		err = proto.Unmarshal(b, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func survives(t *testing.T, f filler, kind rpc.Message, trip func(rpc.Message) (rpc.Message, error)) {
	v := reflect.New(reflect.TypeOf(kind)).Elem()
	f.fill(v)
	sent := v.Interface().(rpc.Message)
	got, err := trip(sent)
	if err != nil {
		t.Fatalf("%T: %v", kind, err)
	}
	if !reflect.DeepEqual(got, sent) {
		t.Errorf("%T changed on the wire:\nsent %+v\ngot  %+v", kind, sent, got)
	}
}

// Random bytes are an error or a message, never a panic.
func FuzzFromWire(f *testing.F) {
	p, err := toJobManager(rpc.Register{Running: []weir.AttemptID{{Vertex: 1}}})
	if err != nil {
		f.Fatal(err)
	}
	seed, _ := proto.Marshal(p)
	f.Add(seed)
	d, _ := toTaskManager(rpc.Deploy{})
	seed, _ = proto.Marshal(d)
	f.Add(seed)
	f.Fuzz(func(t *testing.T, b []byte) {
		q := &controlpb.ToJobManager{}
		if proto.Unmarshal(b, q) == nil {
			if m, err := fromTaskManager(q); err == nil && m == nil {
				t.Error("neither message nor error")
			}
		}
		r := &controlpb.ToTaskManager{}
		if proto.Unmarshal(b, r) == nil {
			if m, err := fromJobManager(r); err == nil && m == nil {
				t.Error("neither message nor error")
			}
		}
	})
}

func TestBadMessagesAreNamed(t *testing.T) {
	bad := []*controlpb.ToJobManager{
		{},
		{Message: &controlpb.ToJobManager_Register{Register: &controlpb.Register{Id: []byte("short")}}},
		{Message: &controlpb.ToJobManager_TaskState{TaskState: &controlpb.TaskStateChanged{Attempt: attemptPB(weir.AttemptID{}), State: 77}}},
		{Message: &controlpb.ToJobManager_Decline{Decline: &controlpb.Decline{Attempt: attemptPB(weir.AttemptID{}), Reason: 200}}},
		{Message: &controlpb.ToJobManager_Acknowledge{Acknowledge: &controlpb.Acknowledge{Attempt: attemptPB(weir.AttemptID{}), Operators: []*controlpb.OperatorState{{}}}}},
	}
	for _, p := range bad {
		if m, err := fromTaskManager(p); err == nil {
			t.Errorf("%v was taken as %+v", p, m)
		}
	}
	if _, err := toJobManager(rpc.Registered{}); err == nil {
		t.Error("a task manager sent a job manager's message")
	}
}
