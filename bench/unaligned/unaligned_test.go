package main

import (
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/examples/checkpointdemo"
	"github.com/weirflow/weir/rpc"
)

const ms = time.Millisecond

// spans are records of 10 ms with gaps of 1 ms: 0 to 10, 11 to 21, 22 to 32, …
func spans(n int) (all []span) {
	for i := range n {
		begun := int64(i) * int64(11*ms)
		all = append(all, span{begun, begun + int64(10*ms)})
	}
	return all
}

func TestOnlyTheRecordBeingProcessedCountsAsRest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		at, waiting time.Duration
		rest        time.Duration
		begun       int
	}{
		{"in the middle of the record before the snapshot", 32 * ms, 4 * ms, 4 * ms, 0},
		{"as it began", 32 * ms, 10 * ms, 10 * ms, 0},
		{"between two records", 32 * ms, 10*ms + 500*time.Microsecond, 0, 1},
		{"a record was begun that should have waited", 32 * ms, 14 * ms, 3 * ms, 1},
		{"two were", 43 * ms, 25 * ms, 3 * ms, 2},
		{"another clock, later", 33 * ms, 4 * ms, 4 * ms, 0},
		{"another clock, earlier", 30 * ms, 4 * ms, 4 * ms, 0},
		{"after all records", 100 * ms, 2 * ms, 2 * ms, 0},
		{"before all", -5 * ms, 2 * ms, 2 * ms, 0},
		{"it did not wait", 32 * ms, 0, 0, 0},
	} {
		rest, begun := waited(spans(5), int64(c.at), c.waiting)
		if rest != c.rest || begun != c.begun {
			t.Errorf("%s: rest %v, %d begun; want %v, %d", c.name, rest, begun, c.rest, c.begun)
		}
	}
	if rest, begun := waited(nil, int64(ms), ms); rest != 0 || begun != 0 {
		t.Errorf("no records: %v, %d", rest, begun)
	}
}

func TestTracesAreRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := readTrace(dir, "job", 1); err == nil {
		t.Error("a missing trace is accepted")
	}
	take := noteTo(dir, "job", 1)
	before := time.Now().UnixNano()
	take(ms)
	take(0)
	after := time.Now().UnixNano()
	got, err := readTrace(dir, "job", 1)
	if err != nil || len(got) != 2 {
		t.Fatalf("%v, %v", got, err)
	}
	if got[0].begun < before || got[0].ended < got[0].begun+int64(ms) || got[1].begun < got[0].ended || got[1].ended > after {
		t.Errorf("%v, from %d to %d", got, before, after)
	}
}

// checkpoint is one of two sources and two counters. The snapshots were taken at these
// times after the trigger, and took 1 ms; asynchronous parts take 5 ms.
func checkpoint(base time.Time, duration time.Duration, at [4]time.Duration) rpc.CheckpointInfo {
	info := rpc.CheckpointInfo{Triggered: base, Duration: duration}
	for i, d := range at {
		vertex := checkpointdemo.SourceOperator
		if i >= managers {
			vertex = checkpointdemo.CountOperator + " -> announce -> discard"
		}
		info.Subtasks = append(info.Subtasks, rpc.SubtaskCheckpoint{
			Vertex: vertex, Attempt: weir.AttemptID{Subtask: int32(i % managers)}, Acknowledged: d + 6*ms,
			Metrics: weir.CheckpointMetrics{SyncDuration: ms, AsyncDuration: 5 * ms, Unaligned: true},
		})
	}
	return info
}

func TestSampleOfACheckpoint(t *testing.T) {
	t.Parallel()
	// Triggered at 20 ms. The first source sends its barrier at 22; counter 0 is in the
	// record from 22 to 32 and takes its snapshot then, counter 1 begins another, to 43.
	info := checkpoint(time.Unix(0, int64(20*ms)), 40*ms, [4]time.Duration{2500 * time.Microsecond, 4 * ms, 12 * ms, 23 * ms})
	s := sampleOf(info, [managers][]span{spans(9), spans(9)})
	if s.rest != 9500*time.Microsecond || s.begun != 1 {
		t.Errorf("rest %v, %d begun", s.rest, s.begun)
	}
	if s.lastSync != 24*ms || s.async != 5*ms || s.unaligned != 4 || s.duration != 40*ms {
		t.Errorf("%+v", s)
	}
}

func TestCheckpointsCountFromAFullQueueOn(t *testing.T) {
	t.Parallel()
	of := func(sizes ...int64) (all []sample) {
		for i, n := range sizes {
			s := sample{inFlight: checkpointdemo.InFlight{Bytes: n}}
			s.info.ID = weir.CheckpointID(i)
			all = append(all, s)
		}
		return all
	}
	for _, c := range []struct {
		all   []sample
		first weir.CheckpointID
	}{
		{of(10, 50, 95, 100, 100, 100), 2},
		{of(100, 100, 100), 1},
		{of(0, 0, 0), 1},
	} {
		if got := full(c.all); got[0].info.ID != c.first {
			t.Errorf("%+v: begins at %d, want %d", c.all, got[0].info.ID, c.first)
		}
	}
	if len(full(nil)) != 0 {
		t.Error("none make some")
	}
}

// judged is a phase with so many checkpoints of each row.
func judged(n int) *phase {
	p := backPressure()
	p.rows = append(p.rows, tenfold().rows...)
	p.change = []time.Duration{ms, ms, 9 * ms}
	base := time.Unix(1000, 0)
	for _, r := range p.rows {
		for i := range n {
			s := sample{duration: 8 * ms, lastSync: 4 * ms, async: 6 * ms, unaligned: 4}
			s.info.Triggered = base.Add(time.Duration(i) * time.Second)
			s.inFlight = checkpointdemo.InFlight{Captured: 110, Bytes: 100}
			switch r.name {
			case "unaligned-5ms":
				s.duration, s.rest = 18*ms, 4*ms
			case "aligned":
				s.duration, s.unaligned = 3*time.Second, 0
			case "timeout":
				s.duration = alignedTimeout + 36*ms
			case "tenfold":
				s.lastSync = 5 * ms
			}
			r.samples = append(r.samples, s)
			// The nearest write is that of the same second.
			r.bare = append(r.bare, bareWrite{s.info.Triggered.Add(200 * ms), 3 * ms})
		}
	}
	return p
}

func TestJudgements(t *testing.T) {
	t.Parallel()
	p := judged(12)
	if r := p.ours("x", "unaligned-5ms"); r.Cost != 2.5 { // 18 − 4 − 3 − 1 against 8 − 3 − 1
		t.Errorf("ours: %+v", r)
	}
	if r := p.size("x", "unaligned-5ms"); r.Cost != 1.1 {
		t.Errorf("size: %+v", r)
	}
	if r := p.late("x"); r.Cost != 2 {
		t.Errorf("late: %+v", r)
	}
	if r := p.lastSync("x"); r.Cost != 1.25 {
		t.Errorf("last sync: %+v", r)
	}
	if r := p.async("x"); r.Cost != 2 {
		t.Errorf("async: %+v", r)
	}
	if r := p.switched("x"); !r.Met || r.Cost < 0.999 || !strings.Contains(r.Note, "3s and more") {
		t.Errorf("switched: %+v", r)
	}
}

func TestSwitchingNeedsFourOfSixAndSlowAlignment(t *testing.T) {
	t.Parallel()
	p := judged(12)
	for i := range 4 {
		p.row("timeout").samples[i].unaligned = 0
	}
	if r := p.switched("x"); !r.Met {
		t.Errorf("8 of 12 switched: %+v", r)
	}
	p.row("timeout").samples[4].unaligned = 0
	if r := p.switched("x"); r.Met {
		t.Errorf("7 of 12 switched: %+v", r)
	}
	p = judged(12)
	p.row("aligned").samples[7].duration = alignedTimeout
	if r := p.switched("x"); r.Met {
		t.Errorf("an aligned checkpoint was fast: %+v", r)
	}
	p = judged(12)
	p.row("aligned").samples = p.row("aligned").samples[:5]
	if r := p.switched("x"); r.Met {
		t.Errorf("five aligned checkpoints: %+v", r)
	}
}

func TestRowsOfAPhaseDifferInName(t *testing.T) {
	t.Parallel()
	for _, p := range []*phase{backPressure(), tenfold()} {
		seen := map[string]bool{}
		for _, r := range p.rows {
			if seen[r.name] || p.row(r.name) != r {
				t.Errorf("row %s", r.name)
			}
			seen[r.name] = true
		}
	}
}
