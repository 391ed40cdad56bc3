package hatest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/jobmanager/ha"
)

// System is an empty registry with its clients, one per process.
type System interface {
	// Connect returns a client for a new process; it is closed at the test's end.
	Connect(t testing.TB, name string) ha.Registry
	// Kill ends a client's process: it says nothing more to anyone.
	Kill(c ha.Registry)
	// Overtake ends the present leadership behind the leader's back.
	Overtake(t testing.TB)
	// DropNext makes the client's next transaction fail before it takes effect,
	// LoseNext after: both are heard as silence.
	DropNext(c ha.Registry)
	LoseNext(c ha.Registry)
}

// Run runs the suite. Each test has a system of its own from open; bubble wraps a
// test in a synctest bubble where the implementation allows it, else just calls it.
func Run(t *testing.T, open func(t testing.TB) System, bubble func(t *testing.T, test func(t *testing.T))) {
	suite := map[string]func(t *testing.T, s System){
		"election/one_leads_at_a_time":                        oneLeads,
		"election/killed_leader_is_succeeded":                 killedLeader,
		"election/campaign_ends_with_its_context":             campaignEnds,
		"election/close_resigns":                              closeResigns,
		"election/overtaken_leader_is_refused_and_told":       overtaken,
		"keys/write_read_list":                                writeReadList,
		"keys/conflict_names_the_actual_value":                conflicts,
		"keys/all_or_nothing":                                 allOrNothing,
		"keys/limits":                                         limits,
		"keys/nobody_writes_without_leading":                  unguarded,
		"settle/lost_answer_is_success_and_applied_once":      settleLost,
		"settle/dropped_request_is_sent_again":                settleDropped,
		"settle/lost_answer_of_a_leader_that_was_overtaken":   settleLostOvertaken,
		"settle/dropped_request_of_an_overtaken_leader":       settleDroppedOvertaken,
		"settle/conflict_with_another_value_is_a_refusal":     settleConflict,
		"settle/doubt_is_returned_when_the_context_ends":      settleEnds,
		"jobs/submit_once_per_request_and_live_name":          submit,
		"jobs/checkpoint_interval":                            checkpointInterval,
		"jobs/status_until_terminal":                          status,
		"jobs/remove":                                         removeJob,
		"jobs/stops":                                          stops,
		"jobs/corrupt_one_does_not_hide_the_others":           corruptJob,
		"chain/links_follow_one_another":                      chain,
		"chain/lost_answer_is_our_own_link":                   chainLost,
		"chain/other_leader_overtakes":                        chainOvertaken,
		"chain/newest_link_is_not_removed":                    chainRemove,
		"chain/dropped_when_the_job_has_ended":                chainDrop,
		"election/confirmed_only_while_it_leads":              confirm,
		"checkpoint_ids/never_repeat_across_leaders_or_doubt": checkpointIDs,
	}
	for name, test := range suite {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) { test(t, open(t)) })
		})
	}
}

// patience bounds waits that end long before when all is well.
const patience = 20 * time.Second

// ctxOf is a context for the calls of a test.
func ctxOf(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, errors.New("the test ran out of patience"))
	t.Cleanup(cancel)
	return ctx
}

// lead makes a new process lead.
func lead(t *testing.T, s System, name string) (ha.Registry, ha.Leadership) {
	t.Helper()
	c := s.Connect(t, name)
	return c, campaign(t, c, name)
}

func campaign(t *testing.T, c ha.Registry, name string) ha.Leadership {
	t.Helper()
	l, err := c.Campaign(ctxOf(t), ha.Candidate{ID: name, Address: name + ":1"})
	if err != nil {
		t.Fatalf("%s campaigns: %v", name, err)
	}
	return l
}

// outcome is the end of a campaign in the background.
type outcome struct {
	leadership ha.Leadership
	err        error
}

// campaignLater starts a campaign and returns where its end will come.
func campaignLater(t *testing.T, ctx context.Context, c ha.Registry, name string) <-chan outcome {
	t.Helper()
	g := group.New(ctx, "campaign/"+name)
	result := make(chan outcome, 1)
	err := g.Go("campaign", func(ctx context.Context) error {
		l, err := c.Campaign(ctx, ha.Candidate{ID: name, Address: name + ":1"})
		result <- outcome{l, err}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		g.Cancel(errors.New("test is over"))
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
	})
	return result
}

func await[T any](t *testing.T, what string, ch <-chan T) T {
	t.Helper()
	var zero T
	select {
	case v := <-ch:
		return v
	case <-ctxOf(t).Done():
		t.Fatalf("%s: waited for too long", what)
		return zero
	}
}

func wantIs(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}

func mustTxn(t *testing.T, c ha.Registry, epoch weir.LeaderEpoch, ops ...ha.Op) ha.Revision {
	t.Helper()
	rev, err := c.Txn(ctxOf(t), epoch, ops...)
	if err != nil {
		t.Fatalf("Txn: %v", err)
	}
	return rev
}

func mustGet(t *testing.T, c ha.Registry, key string) ha.KV {
	t.Helper()
	kv, err := c.Get(ctxOf(t), key)
	if err != nil {
		t.Fatalf("Get(%q): %v", key, err)
	}
	return kv
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
