package checkpointdemo

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/flow/flowtest"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/statebackend"
)

func TestBuilderIsDeterministic(t *testing.T) {
	t.Parallel()
	flow.Check(t, Job, nil)
}

func TestPlanIsThatOfTheDemo(t *testing.T) {
	t.Parallel()
	p, err := Job.Build(nil)
	if err != nil {
		t.Fatal(err)
	}
	g, err := jobgraph.Compile(p.Logical(), jobgraph.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Vertices) != 2 || g.Vertices[0].Name != "datagen" || g.Vertices[1].Name != "count -> announce -> discard" ||
		g.Vertices[0].Parallelism != 2 || g.Vertices[1].Parallelism != 2 || g.Edges[0].Partitioning != jobgraph.Hash {
		t.Errorf("%+v", g)
	}
}

func TestBadParametersAreNamedTogether(t *testing.T) {
	t.Parallel()
	_, err := Job.Build(map[string]string{"rate": "-1", "size": "1GB", "keys": "0", "sleep": "1h", "sleep-in": "sink", "parallelism": "0", "records": "-1"})
	if !errors.Is(err, operator.ErrBadParams) {
		t.Fatal(err)
	}
	for _, name := range []string{"rate", "size", "keys", "sleep", "sleep-in", "parallelism", "records"} {
		if !strings.Contains(err.Error(), `parameter "`+name+`"`) {
			t.Errorf("%s is missing in %v", name, err)
		}
	}
}

// run runs the whole job with one counting task, and returns it.
func run(t *testing.T, params map[string]string, restore *flowtest.Snapshot, limit int) (source, count *flowtest.Task) {
	source = flowtest.Open(t, Job, params, flowtest.Options{Operator: "datagen", Restore: restore})
	count = flowtest.Open(t, Job, params, flowtest.Options{Operator: CountOperator, Restore: restore})
	for range limit {
		status := source.Poll(64)
		count.MustFeed(source.Emitted())
		if status == operator.SourceEmpty {
			break
		}
	}
	return source, count
}

func tallies(t *testing.T, count *flowtest.Task) map[string]Tally {
	t.Helper()
	got := make(map[string]Tally)
	for k, v := range count.States(CountOperator, TallyState, statebackend.Descriptor{FixedSize: 16, Schema: tallySchema}) {
		key, tally, err := ReadTally([]byte(k), []byte(v))
		if err != nil {
			t.Fatal(err)
		}
		got[key] = tally
	}
	return got
}

func TestStateIsTheClosedForm(t *testing.T) {
	t.Parallel()
	for _, records := range []string{"1", "5", "16", "1000", "1003"} {
		params := map[string]string{"records": records, "rate": "0", "parallelism": "1", "keys": "16"}
		_, count := run(t, params, nil, 1<<20)
		n := int64(0)
		for _, c := range records {
			n = 10*n + int64(c-'0')
		}
		if got, want := tallies(t, count), Expected(n, 16); !maps.Equal(got, want) {
			t.Errorf("%s records: got %v, want %v", records, got, want)
		}
	}
	sum := int64(0)
	for _, tally := range Expected(1003, 16) {
		sum += tally.Sum
	}
	if sum != 1003*1002/2 {
		t.Errorf("the closed form sums up to %d", sum)
	}
}

func TestRestoredJobCountsEveryRecordOnce(t *testing.T) {
	t.Parallel()
	params := map[string]string{"records": "1000", "rate": "0", "parallelism": "1", "keys": "7"}
	source, count := run(t, params, nil, 5)
	snapshot := flowtest.Merge(source.Snapshot(1), count.Snapshot(1))
	count.MustFeed(source.Emitted())
	_, again := run(t, params, snapshot, 1<<20)
	if got, want := tallies(t, again), Expected(1000, 7); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestNumberOfProcessedRecordsIsRestored(t *testing.T) {
	t.Parallel()
	c := &counter{processed: 3}
	if err := c.RestoreState([][]byte{{5}, {0xac, 0x02}}); err != nil || c.processed != 308 {
		t.Errorf("%d, %v", c.processed, err)
	}
	state, err := c.SnapshotState()
	if n, again := readProcessed(state[0]); err != nil || again != nil || n != 308 {
		t.Errorf("%d, %v, %v", n, err, again)
	}
	for _, bad := range [][]byte{nil, {0x80}, {1, 1}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}} {
		if err := c.RestoreState([][]byte{bad}); err == nil {
			t.Errorf("%x is accepted", bad)
		}
	}
}

// TestBytesOfARecord compares what is said of a record on the wire with what it has.
func TestBytesOfARecord(t *testing.T) {
	t.Parallel()
	for _, size := range []string{"", "100B", "4KiB"} {
		params := map[string]string{"records": "1000", "rate": "0", "parallelism": "1", "size": size}
		if size == "" {
			delete(params, "size")
		}
		source, _ := run(t, params, nil, 0)
		source.Poll(1000)
		got, err := recordBytes(params, 500)
		want := float64(source.Outputs[0].Bytes)/1000 + elementHead
		if err != nil || float64(got) < 0.98*want || float64(got) > 1.02*want {
			t.Errorf("size %q: %d bytes, in the mean they are %v, %v", size, got, want, err)
		}
	}
	if _, err := recordBytes(map[string]string{"size": "x"}, 1); err == nil {
		t.Error("a bad size is accepted")
	}
}

func TestRecordsHaveTheirSizeAndTakeTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, where := range []string{"count", "map"} {
			start := time.Now()
			params := map[string]string{"records": "10", "rate": "0", "parallelism": "1", "sleep": "5ms", "sleep-in": where}
			source, count := run(t, params, nil, 1)
			if took := time.Since(start); took != 50*time.Millisecond {
				t.Errorf("in %s: 10 records took %v", where, took)
			}
			if bytes := source.Outputs[0].Bytes; bytes < 9500 || bytes > 10500 {
				t.Errorf("10 records have %d bytes", bytes)
			}
			if err := count.Chain.NotifyComplete(3); err != nil || count.Counters["announce/completed_checkpoints"].Load() != 1 {
				t.Errorf("notify: %v", err)
			}
		}
	})
}
