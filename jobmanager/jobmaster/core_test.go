package jobmaster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/jobmanager/checkpointing"
	"github.com/weirflow/weir/jobmanager/execgraph"
	"github.com/weirflow/weir/jobmanager/joboption"
	"github.com/weirflow/weir/jobmanager/opcoord"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/snapshotmeta"
)

// TestLives runs the scripts of testdata: whole lives of jobs. The script plays the
// loop and everything behind it; timers fire when "advance" passes them.
//
//	new [src=N] [count=N] [alone=N] [edge=PARTITIONING] [option=value …]
//	                        a job: src (source) to count (by default keyed) and, if alone is
//	                        given, a second source that is connected to nobody
//	start [resumed] [completed=ID,…] [stop=REQUEST]
//	grant TM…               answers the last request for slots, one TaskManager each
//	short TEXT, lost TM, cancel, crash OPERATOR
//	assigned                coordinators that were started assign one split per subtask
//	loaded ID count=N [src=N] [flight=PRODUCER>CONSUMER,…]
//	                        the snapshot, taken with this parallelism; what both ends of
//	                        these channels captured
//	unreadable [final]
//	state S STATE [why=TEXT] [cause=S] [final]   S is v0[1], v0[1]#2, or all
//	id N, snapshotted, acks N, decline S N, written N, linked N, overtaken
//	event S TEXT, barrier S N
//	snapshot REQUEST KIND, stop REQUEST [drain], recorded REQUEST [why=TEXT], ready N, unwritable N
//	ended S                 the attempt has reached the end of its data
//	advance D, view
func TestLives(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var r *rig
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "new" {
				r = newRig(t, d)
				return "ok"
			}
			return r.run(t, d)
		})
	})
}

var (
	testJob = weir.JobID{0xab}
	epoch   = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

// testGraph is src -> count, and alone if it has a parallelism.
func testGraph(src, count, alone int) *jobgraph.JobGraph {
	g := &jobgraph.JobGraph{Name: "job", Vertices: []jobgraph.Vertex{
		{Index: 0, Name: "src", Operators: []string{"src"}, IDs: []weir.OperatorID{weir.OperatorIDOf("src")}, Source: true, Parallelism: src, MaxParallelism: 10, Outputs: []int{0}},
		{Index: 1, Name: "count", Operators: []string{"count"}, IDs: []weir.OperatorID{weir.OperatorIDOf("count")}, Keyed: true, Parallelism: count, MaxParallelism: 10, Inputs: []int{0}},
	}, Edges: []jobgraph.Edge{{Index: 0, From: 0, To: 1, FromOperator: "src", ToOperator: "count", Partitioning: jobgraph.Hash}}}
	if alone > 0 {
		g.Vertices = append(g.Vertices, jobgraph.Vertex{
			Index: 2, Name: "alone", Operators: []string{"alone"}, IDs: []weir.OperatorID{weir.OperatorIDOf("alone")}, Source: true, Parallelism: alone, MaxParallelism: 10,
		})
	}
	return g
}

// rig is a core with the world that a script sees.
type rig struct {
	core    *Core
	spec    *Spec
	now     time.Time
	timers  map[TimerKey]time.Time
	request RequestSlots
	loading LoadSnapshot
	started []StartCoordinator
	asked   checkpointing.TriggerID
	wanted  []SnapshotCoordinator
	slot    int
	out     []string
}

func newRig(t *testing.T, d *datadriven.TestData) *rig {
	sizes := map[string]int{"src": 1, "count": 1, "alone": 0}
	options := map[string]string{}
	edge := jobgraph.Hash
	for _, a := range d.CmdArgs {
		if a.Key == "edge" {
			for edge = 0; edge.String() != a.Vals[0]; edge++ {
				if edge > jobgraph.Custom {
					t.Fatalf("partitioning %q", a.Vals[0])
				}
			}
			continue
		}
		if _, ok := sizes[a.Key]; ok {
			n := 0
			fmt.Sscan(a.Vals[0], &n)
			sizes[a.Key] = n
		} else {
			options[a.Key] = a.Vals[0]
		}
	}
	settings, err := joboption.Parse(options)
	if err != nil {
		t.Fatal(err)
	}
	spec := &Spec{
		Job: testJob, Name: "job", Epoch: 3, Graph: testGraph(sizes["src"], sizes["count"], sizes["alone"]),
		Settings: settings, Directory: snapshotmeta.JobDir(testJob), Rand: rand.New(rand.NewPCG(1, 2)),
	}
	spec.Graph.Edges[0].Partitioning = edge
	return &rig{core: NewCore(spec), spec: spec, now: epoch, timers: map[TimerKey]time.Time{}}
}

func (r *rig) step(ev Event) {
	for _, a := range r.core.Step(r.now, ev) {
		r.out = append(r.out, a.String())
		switch a := a.(type) {
		case ArmTimer:
			r.timers[a.Key] = a.At
		case CancelTimer:
			delete(r.timers, a.Key)
		case RequestSlots:
			r.request = a
		case LoadSnapshot:
			r.loading = a
		case StartCoordinator:
			r.started = append(r.started, a)
		case SnapshotCoordinator:
			r.wanted = append(r.wanted, a)
		case Store:
			if take, ok := a.Action.(checkpointing.TakeID); ok {
				r.asked = take.Trigger
			}
		}
	}
}

func (r *rig) run(t *testing.T, d *datadriven.TestData) string {
	r.out = nil
	if !r.outside(t, d) && !r.answer(t, d) && !r.checkpoint(t, d) && !r.wish(t, d) {
		t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
	}
	if len(r.out) == 0 {
		return "nothing"
	}
	return strings.Join(r.out, "\n")
}

// outside runs the commands for what others do.
func (r *rig) outside(t *testing.T, d *datadriven.TestData) bool {
	switch d.Cmd {
	case "start":
		e := Start{Resumed: d.HasArg("resumed")}
		for _, a := range d.CmdArgs {
			if a.Key == "stop" {
				e.Stop = &Stop{Request: a.Vals[0], Kind: weir.SuspendSavepoint, Directory: "//savepoints"}
				continue
			}
			for _, v := range a.Vals {
				done := checkpointing.CompletedCheckpoint{ID: weir.CheckpointID(number(t, v)), Metadata: "chk-" + v, Owned: true}
				if d.HasArg("saved") {
					done.Kind, done.Metadata = weir.SuspendSavepoint, "savepoints/"+SavepointPrefix(testJob, "r1")+"-2-1/_metadata"
				}
				e.Completed = append(e.Completed, done)
			}
		}
		r.step(e)
	case "grant":
		e := SlotsGranted{Request: r.request.Request}
		for _, a := range d.CmdArgs {
			r.slot++
			tm := number(t, a.Key)
			e.Slots = append(e.Slots, Slot{Location: execgraph.Location{TaskManager: weir.TaskManagerID{byte(tm)}, Incarnation: 1, Slot: r.slot}, DataAddress: "tm" + a.Key})
		}
		r.step(e)
	case "short":
		r.step(SlotsShort{Request: r.request.Request, Text: strings.TrimSpace(d.Input)})
	case "lost":
		r.step(TaskManagerLost{TaskManager: weir.TaskManagerID{byte(number(t, d.CmdArgs[0].Key))}, Incarnation: 1, Reason: "session broke"})
	case "cancel":
		r.step(CancelRequested{})
	case "state":
		r.state(t, d)
	case "event":
		x := r.attempt(t, d.CmdArgs[0].Key)
		r.step(Coordination{Operator: r.spec.Graph.Vertices[x.Vertex].IDs[0], Event: opcoord.EventReceived{Attempt: x, Event: []byte(d.CmdArgs[1].Key)}})
	case "advance":
		r.advance(t, d.CmdArgs[0].Key)
	case "view":
		v := r.core.View(r.now)
		r.out = append(r.out, fmt.Sprintf("%s %q, %d running, %d restarts, latest %d, restored %q", v.Status, v.Detail, v.Running, v.Restarts, v.Latest, v.RestoredFrom))
	default:
		return false
	}
	return true
}

// answer runs the commands that answer actions, but for checkpoints'.
func (r *rig) answer(t *testing.T, d *datadriven.TestData) bool {
	switch d.Cmd {
	case "assigned":
		started := r.started
		r.started = nil
		for _, s := range started {
			e := CoordinatorStarted{Run: s.Run, Operator: s.Operator}
			for i := range s.Parallelism {
				if !s.Restored {
					e.Splits = append(e.Splits, [][]byte{fmt.Appendf(nil, "%s-%d", s.Name, i)})
				}
			}
			r.step(e)
		}
	case "crash":
		op := weir.OperatorIDOf(d.CmdArgs[0].Key)
		run := r.core.coordinators[slices.IndexFunc(r.core.sources, func(s source) bool { return s.id == op })]
		r.step(CoordinatorBroke{Run: run, Operator: op, Failure: weir.Failure{Message: "enumerator panicked", Operator: d.CmdArgs[0].Key, Subtask: -1}})
	case "loaded":
		id, src, count := 0, r.spec.Graph.Vertices[0].Parallelism, 0
		d.ScanArgs(t, "id", &id)
		d.ScanArgs(t, "count", &count)
		d.MaybeScanArgs(t, "src", &src)
		s, states := r.snapshot(t, weir.CheckpointID(id), src, count)
		inFlight(t, s, d)
		r.step(SnapshotLoaded{Run: r.loading.Run, Snapshot: s, Coordinators: states})
	case "unreadable":
		r.step(SnapshotUnreadable{Run: r.loading.Run, Failure: weir.Failure{Message: "cannot read", NoRetry: d.HasArg("final")}})
	default:
		return false
	}
	return true
}

// checkpoint runs the commands for checkpoints.
func (r *rig) checkpoint(t *testing.T, d *datadriven.TestData) bool {
	var id weir.CheckpointID
	if len(d.CmdArgs) > 0 {
		var n int64
		fmt.Sscan(d.CmdArgs[len(d.CmdArgs)-1].Key, &n)
		id = weir.CheckpointID(n)
	}
	pass := func(ev checkpointing.Event) { r.step(Checkpointing{ev}) }
	switch d.Cmd {
	case "id":
		pass(checkpointing.IDTaken{Trigger: r.asked, Checkpoint: id})
	case "snapshotted":
		wanted := r.wanted
		r.wanted = nil
		for _, w := range wanted {
			run := r.core.coordinators[slices.IndexFunc(r.core.sources, func(s source) bool { return s.id == w.Operator })]
			r.step(Coordination{Run: run, Operator: w.Operator, Event: opcoord.SnapshotTaken{Checkpoint: w.Checkpoint, State: []byte("enum")}})
		}
	case "barrier":
		x := r.attempt(t, d.CmdArgs[0].Key)
		r.step(Coordination{Operator: r.spec.Graph.Vertices[x.Vertex].IDs[0], Event: opcoord.BarrierSent{Attempt: x, Checkpoint: id}})
	case "acks":
		for x := range r.core.graph.Executions() {
			pass(checkpointing.Acknowledged{Attempt: x.ID, Checkpoint: id, State: weir.TaskStateSnapshot{}})
		}
	case "decline":
		pass(checkpointing.Declined{Attempt: r.attempt(t, d.CmdArgs[0].Key), Checkpoint: id, Reason: weir.CheckpointDeclined, Message: "no"})
	case "written":
		pass(checkpointing.MetadataWritten{Checkpoint: id, Metadata: fmt.Sprintf("chk-%d", id), Bytes: 100})
	case "linked":
		pass(checkpointing.LinkAdded{Checkpoint: id, Permit: permit(id)})
	case "overtaken":
		pass(checkpointing.OvertakenByOther{Message: "epoch 4 leads"})
	default:
		return false
	}
	return true
}

// wish runs the commands for snapshots that are asked for, stops and the last checkpoint.
func (r *rig) wish(t *testing.T, d *datadriven.TestData) bool {
	first := d.CmdArgs[0].Key
	switch d.Cmd {
	case "snapshot":
		kind := weir.Checkpoint
		for kind.String() != d.CmdArgs[1].Key {
			kind++
		}
		r.step(SnapshotRequested{Request: first, Kind: kind, Directory: "//savepoints"})
	case "stop":
		kind := weir.SuspendSavepoint
		if d.HasArg("drain") {
			kind = weir.TerminateSavepoint
		}
		r.step(StopRequested{Stop: Stop{Request: first, Kind: kind, Directory: "//savepoints"}})
	case "recorded":
		e := StopRecorded{Request: first}
		d.MaybeScanArgs(t, "why", &e.Failure)
		r.step(e)
	case "ready":
		r.step(Checkpointing{checkpointing.LocationInitialized{Checkpoint: weir.CheckpointID(number(t, first))}})
	case "unwritable":
		r.step(Checkpointing{checkpointing.LocationFailed{Checkpoint: weir.CheckpointID(number(t, first)), Reason: weir.IOException, Message: "disk full"}})
	case "ended":
		r.step(DataEnded{Attempt: r.attempt(t, first)})
	default:
		return false
	}
	return true
}

type permit weir.CheckpointID

func (p permit) ID() weir.CheckpointID { return weir.CheckpointID(p) }

func (r *rig) state(t *testing.T, d *datadriven.TestData) {
	var why, cause string
	d.MaybeScanArgs(t, "why", &why)
	d.MaybeScanArgs(t, "cause", &cause)
	state := slices.Index([]string{"CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING", "CANCELING", "FINISHED", "CANCELED", "FAILED"}, d.CmdArgs[1].Key)
	e := TaskState{State: rpc.TaskState(state)}
	if why != "" {
		e.Failure = &weir.Failure{Message: why, NoRetry: d.HasArg("final")}
	}
	if cause != "" {
		e.Failure.Cause = r.attempt(t, cause)
	}
	if d.CmdArgs[0].Key != "all" {
		e.Attempt = r.attempt(t, d.CmdArgs[0].Key)
		r.step(e)
		return
	}
	for _, x := range slices.Collect(r.core.graph.Executions()) {
		if x.State.Deployed() {
			e.Attempt = x.ID
			r.step(e)
		}
	}
}

// attempt reads v0[1] as the current attempt, or v0[1]#2.
func (r *rig) attempt(t *testing.T, s string) weir.AttemptID {
	var v, i, n int32
	switch k, _ := fmt.Sscanf(s, "v%d[%d]#%d", &v, &i, &n); k {
	case 2:
		return r.core.graph.Current(weir.SubtaskID{Vertex: v, Subtask: i}).ID
	case 3:
		return weir.AttemptID{Job: testJob, Vertex: v, Subtask: i, Epoch: 3, N: n}
	}
	t.Fatalf("bad attempt %q", s)
	return weir.AttemptID{}
}

func (r *rig) advance(t *testing.T, text string) {
	by, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	end := r.now.Add(by)
	for {
		var due []TimerKey
		for k, at := range r.timers {
			if !at.After(end) {
				due = append(due, k)
			}
		}
		if len(due) == 0 {
			r.now = end
			return
		}
		slices.SortFunc(due, func(a, b TimerKey) int { return r.timers[a].Compare(r.timers[b]) })
		r.now = r.timers[due[0]]
		delete(r.timers, due[0])
		r.step(TimerFired{Key: due[0]})
	}
}

// inFlight adds what both ends of these channels captured.
func inFlight(t *testing.T, s *snapshotmeta.Snapshot, d *datadriven.TestData) {
	for _, a := range d.CmdArgs {
		for _, v := range a.Vals {
			if a.Key != "flight" {
				continue
			}
			var producer, consumer int32
			if _, err := fmt.Sscanf(v, "%d>%d", &producer, &consumer); err != nil {
				t.Fatal(err)
			}
			for side, name := range []string{"in", "out"} {
				s.Channels = append(s.Channels, weir.ChannelStateHandle{
					Edge: weir.EdgeID{From: "src", To: "count"}, Side: weir.ChannelSide(side), Producer: producer, Consumer: consumer,
					Handle: weir.StateHandle{File: name, Length: 1},
				})
			}
		}
	}
}

// snapshot is one that was taken with this parallelism.
func (r *rig) snapshot(t *testing.T, id weir.CheckpointID, src, count int) (*snapshotmeta.Snapshot, map[weir.OperatorID][]byte) {
	h := snapshotmeta.Header{Job: testJob, Checkpoint: id}
	for _, v := range testGraph(src, count, 0).Vertices {
		h.Vertices = append(h.Vertices, snapshotmeta.Vertex{
			Name: v.Name, Parallelism: v.Parallelism, MaxParallelism: v.MaxParallelism,
			Operators: []snapshotmeta.OperatorRef{{ID: v.IDs[0], Name: v.Name}},
		})
	}
	s := snapshotmeta.New(h)
	for v := range h.Vertices {
		for i := range h.Vertices[v].Parallelism {
			state := weir.OperatorSubtaskState{Operator: h.Vertices[v].Operators[0].ID, Name: h.Vertices[v].Name}
			if v == 0 {
				state.Elements = []weir.StateHandle{{File: fmt.Sprint("split", i), Length: 1}}
			} else {
				state.Keyed = []weir.KeyedStateHandle{{Range: weir.KeyGroupRangeOf(10, count, i), Backend: "heap", Handle: weir.StateHandle{File: "f", Length: 1}}}
			}
			if err := s.AddTask(weir.SubtaskID{Vertex: int32(v), Subtask: int32(i)}, weir.TaskStateSnapshot{Operators: []weir.OperatorSubtaskState{state}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s, map[weir.OperatorID][]byte{h.Vertices[0].Operators[0].ID: []byte("enum")}
}

func number(t *testing.T, s string) int {
	n := 0
	if _, err := fmt.Sscan(s, &n); err != nil {
		t.Fatalf("bad number %q", s)
	}
	return n
}
