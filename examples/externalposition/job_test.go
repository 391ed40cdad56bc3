package externalposition

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/minicluster"
	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/snapshotmeta"
)

// TestPositionIsPartOfCheckpoints has the log grow, reads the position out of a
// checkpoint, and starts another job from it, whose hook is taken back to it.
func TestPositionIsPartOfCheckpoints(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log, note := filepath.Join(dir, "log"), filepath.Join(dir, "note")
	grow := func(to int) {
		t.Helper()
		if err := os.WriteFile(log, []byte(strings.Repeat("x", to)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	grow(10)
	c := minicluster.ForTest(t, minicluster.Options{Jobs: []flow.Job{Job}})
	submit := func(name, from, interval string) weir.JobID {
		t.Helper()
		reply, err := c.Gateway().Submit(t.Context(), rpc.SubmitRequest{
			Entrypoint: Name, Name: name, From: from, Params: map[string]string{"log": log, "note": note},
			Options: map[string]string{"execution.checkpointing.interval": interval, "execution.checkpointing.num-retained": "1000"},
		})
		if err != nil {
			t.Fatal(err)
		}
		return reply.Job
	}
	job := submit("first", "", "20ms")
	var id weir.CheckpointID
	var snapshot string
	for _, size := range []int{10, 500} {
		grow(size)
		if info, err := c.AwaitCheckpoint(t.Context(), job, id); err != nil {
			t.Fatal(err)
		} else if info, err = c.AwaitCheckpoint(t.Context(), job, info.ID+1); err != nil { // begun after the log grew
			t.Fatal(err)
		} else {
			id = info.ID
		}
		snapshot = path.Join(snapshotmeta.JobDir(job), snapshotmeta.Dir(id))
		s, err := snapshotmeta.Open(t.Context(), c.Store(), snapshot)
		if err != nil {
			t.Fatal(err)
		}
		want := []byte{10}
		if size == 500 {
			want = []byte{0xf4, 3}
		}
		if h := s.Header.Hooks; len(h) != 1 || h[0].Name != HookName || string(h[0].State) != string(want) {
			t.Fatalf("checkpoint %d has the hooks %+v", id, h)
		}
	}
	if err := c.Gateway().Cancel(t.Context(), job.String()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Await(t.Context(), job, func(d rpc.JobDetail) bool { return d.Status.Final() }); err != nil {
		t.Fatal(err)
	}
	grow(9000)
	if err := os.Remove(note); err != nil {
		t.Fatal(err)
	}
	job = submit("second", c.Store().Location()+"/"+snapshot, "1h")
	if _, err := c.Await(t.Context(), job, func(d rpc.JobDetail) bool { return d.Status == rpc.JobRunning }); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(note)
	if want := fmt.Sprintf("checkpoint %d covers 500 bytes of %s\n", id, log); err != nil || string(b) != want {
		t.Errorf("the note says %q, want %q; %v", b, want, err)
	}
}

func TestNoteFollowsCompleteCheckpoints(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := &position{log: filepath.Join(dir, "log"), note: filepath.Join(dir, "note")}
	if _, err := p.Trigger(t.Context(), 1); err == nil {
		t.Error("no error without a log")
	}
	if err := os.WriteFile(p.log, make([]byte, 7), 0o600); err != nil {
		t.Fatal(err)
	}
	for id := int64(1); id <= 3; id++ {
		if _, err := p.Trigger(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	p.NotifyComplete(2)
	if b, err := os.ReadFile(p.note); err != nil || !strings.HasPrefix(string(b), "checkpoint 2 covers 7 bytes") || len(p.triggered) != 1 {
		t.Errorf("%q, %v, %+v", b, err, p.triggered)
	}
	if err := p.Restore(t.Context(), 2, []byte{0xff}); !errors.Is(err, errBadState) {
		t.Errorf("got %v", err)
	}
	flow.Check(t, Job, map[string]string{"log": "l", "note": "n"})
}
