package cli

import (
	"strings"
	"testing"

	"github.com/weirflow/weir/rpc"
)

func TestShowSaysWhatAJobWasStartedFromAndWhy(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]rpc.JobDetail{
		"restored     checkpoint 7 of job 01 (it is the newest)\n": {RestoredFrom: "checkpoint 7 of job 01", RestoreReason: "it is the newest"},
		"restored     nothing (it was to start from nothing)\n":    {RestoreReason: "it was to start from nothing"},
		"restored     checkpoint 7 of job 01\n":                    {RestoredFrom: "checkpoint 7 of job 01"},
	} {
		c := newCommand()
		(&app{streams: Streams{Out: &c.stdout}}).printDetail(d)
		if !strings.Contains(c.stdout.String(), want) {
			t.Errorf("no %q in\n%s", want, c.stdout.String())
		}
		if out := detailJSONOf(d); out.RestoreWhy != d.RestoreReason {
			t.Errorf("%+v", out)
		}
	}
}

func TestFlagsOfAStartAreOptions(t *testing.T) {
	t.Parallel()
	c := newCommand()
	j := job{from: "latest", restoreMode: "claim", allowDropped: true}
	r, err := j.request("demo")
	if err != nil || r.From != "latest" || r.Options["execution.state-recovery.claim-mode"] != "CLAIM" ||
		r.Options["execution.state-recovery.ignore-unclaimed-state"] != "true" {
		t.Errorf("%+v, %v", r, err)
	}
	for _, bad := range [][]string{
		{"--from", ""}, // of a script whose savepoint failed
		{"--restore-mode", "legacy"},
		{"--restore-mode", "claim", "--set", "execution.state-recovery.claim-mode=NO_CLAIM"},
	} {
		if code := c.run(t.Context(), append([]string{"submit", "demo"}, bad...)...); code != ExitUsage {
			t.Errorf("%q: exit code %d", bad, code)
		}
	}
}
