package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/rpc"
	"github.com/weirflow/weir/snapshotmeta"
)

// answers is a cluster that says one thing after the other about what is in use.
type answers []func() (rpc.InUse, error)

func (a *answers) InUse(context.Context) (rpc.InUse, error) {
	next := (*a)[0]
	if len(*a) > 1 {
		*a = (*a)[1:]
	}
	return next()
}

func TestGCListsAndDeletesOnlyIfAskedTo(t *testing.T) {
	t.Parallel()
	s := sampleSnapshot(t)
	dir := putSnapshot(t, s)
	root := filepath.Dir(filepath.Dir(dir))
	left := filepath.Join(filepath.Dir(dir), "chk-6", "v1.state")
	write := func() {
		if err := os.MkdirAll(filepath.Dir(left), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(left, []byte("content"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write()
	use := rpc.InUse{CheckpointDir: root, Jobs: []rpc.JobInUse{
		{Job: s.Header.Job, Status: rpc.JobRunning, Metadata: []string{snapshotmeta.MetadataName(s.Header.Job, 7)}},
	}}
	ok := func() (rpc.InUse, error) { return use, nil }
	for _, c := range []struct {
		dir     string
		age     time.Duration
		remove  bool
		orphans int
		deleted int
	}{
		{"", 0, false, 1, 0},
		{root, time.Hour, true, 0, 0},
		{root, 0, true, 1, 1},
		{root, 0, true, 0, 0},
	} {
		out, err := collect(t.Context(), &answers{ok}, c.dir, c.age, c.remove)
		if err != nil || out.OrphanFiles != c.orphans || out.DeletedFiles != c.deleted || out.InUse != 1 || out.Dir != root {
			t.Errorf("%+v: %+v, %v", c, out, err)
		}
		cmd := newCommand()
		(&app{roles: cmd.roles, streams: Streams{Out: &cmd.stdout}}).printGC(out, c.remove)
		if want := "1 snapshots in use"; !strings.Contains(cmd.stdout.String(), want) {
			t.Errorf("no %q in %s", want, cmd.stdout.String())
		}
	}
	if _, err := verifySnapshot(t.Context(), dir); err != nil {
		t.Error(err)
	}

	write()
	silent := func() (rpc.InUse, error) { return rpc.InUse{}, errors.New("no leader") }
	for _, c := range []answers{{silent}, {ok, silent}, {ok, ok, silent}} {
		if _, err := collect(t.Context(), &c, "", 0, true); err == nil || !strings.Contains(err.Error(), "nothing is deleted without knowing") {
			t.Errorf("with a cluster that is silent: %v", err)
		}
	}
	if _, err := os.Stat(left); err != nil {
		t.Error(err)
	}
	if _, err := collect(t.Context(), &answers{ok}, filepath.Join(root, "absent"), 0, true); rpc.CodeOf(err) != rpc.CodeNotFound {
		t.Errorf("absent directory: %v", err)
	}
	use.Jobs[0].Metadata = append(use.Jobs[0].Metadata, snapshotmeta.MetadataName(s.Header.Job, 8))
	out, err := collect(t.Context(), &answers{ok}, root, 0, true)
	if err != nil || len(out.Trouble) != 1 || out.OrphanFiles != 0 {
		t.Errorf("a link without a file: %+v, %v", out, err)
	}
}
