package credit_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/weirflow/weir/netstack/credit"
)

// world is both ends of one channel and the floating pool of its gate.
type world struct {
	grants credit.Grants
	ledger credit.Ledger
	pool   int // free floating buffers
}

// TestCredit runs the scripts. Their commands:
//
//	receiver exclusive=E [there=n] [pool=n]   a channel; n floating buffers are free
//	sender credit=n                           the other end
//	data [backlog=n]                          a data message arrives
//	event [backlog=n]                         an event arrives
//	recycle                                   the task gives an exclusive buffer back
//	return                                    another channel gives a floating buffer back
//	give-up / reset                           the producer stops / is resumed, with E = 0
//	announce                                  an AddCredit message is sent
//	add n / head data|event / send data|event the sender's side
func TestCredit(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/credit", func(t *testing.T, path string) {
		var w world
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return w.run(t, d)
		})
	})
}

func (w *world) run(t *testing.T, d *datadriven.TestData) string {
	arg := func(key string, otherwise int) int {
		n := otherwise
		d.MaybeScanArgs(t, key, &n)
		return n
	}
	switch d.Cmd {
	case "receiver":
		e := arg("exclusive", 0)
		w.grants = credit.NewGrants(e, arg("there", e))
		w.pool = arg("pool", 0)
		return w.state()
	case "data":
		kind, err := w.grants.Take()
		if err != nil {
			return err.Error()
		}
		return map[credit.Kind]string{credit.Exclusive: "uses an exclusive buffer", credit.Floating: "uses a floating buffer"}[kind] + "\n" + w.backlog(arg("backlog", 0))
	case "event":
		return w.backlog(arg("backlog", 0))
	case "recycle":
		giveUp, announce := w.grants.Recycled()
		if giveUp {
			w.pool++
			return "gives a floating buffer back\n" + w.state()
		}
		return due(announce) + w.state()
	case "give-up":
		n := w.grants.GiveUp()
		w.pool += n
		return fmt.Sprintf("gives %d floating buffers back\n%s", n, w.state())
	case "reset":
		w.ledger.Reset()
		return fmt.Sprintf("credit %d", w.ledger.Credit())
	case "return":
		w.pool++
		return w.request()
	case "announce":
		return fmt.Sprintf("AddCredit(%d)\n%s", w.grants.Announce(), w.state())
	case "sender":
		w.ledger = credit.NewLedger(arg("credit", 0))
		return fmt.Sprintf("credit %d", w.ledger.Credit())
	case "add":
		if err := w.ledger.Add(arg("credit", 0)); err != nil {
			return err.Error()
		}
		return fmt.Sprintf("credit %d", w.ledger.Credit())
	case "head":
		if w.ledger.MaySend(d.HasArg("event")) {
			return "available"
		}
		return "not available"
	case "send":
		seq := w.ledger.Spend(d.HasArg("event"))
		return fmt.Sprintf("message %d, credit %d", seq, w.ledger.Credit())
	}
	d.Fatalf(t, "unknown command")
	return ""
}

func due(announce bool) string {
	if announce {
		return "an announcement becomes due\n"
	}
	return ""
}

func (w *world) backlog(n int) string {
	w.grants.Backlog(n)
	return w.request()
}

// request asks the pool for what is missing.
func (w *world) request() string {
	var b strings.Builder
	got := 0
	for w.grants.Missing() > 0 && w.pool > 0 {
		w.pool--
		got++
		b.WriteString(due(w.grants.Got()))
	}
	if got > 0 {
		fmt.Fprintf(&b, "gets %d floating buffers\n", got)
	}
	return b.String() + w.state()
}

func (w *world) state() string {
	s := fmt.Sprintf("free %d, pool %d", w.grants.Free(), w.pool)
	if n := w.grants.Missing(); n > 0 {
		s += fmt.Sprintf(", waits for %d", n)
	}
	return s
}

func TestDataWithoutCreditIsTheSendersFault(t *testing.T) {
	t.Parallel()
	g := credit.NewGrants(1, 1)
	if _, err := g.Take(); err != nil {
		t.Fatal(err)
	}
	g.Backlog(3)
	g.Got() // free, but the sender does not know
	if _, err := g.Take(); !errors.Is(err, credit.ErrNoCredit) {
		t.Errorf("got %v", err)
	}
}

func TestTooMuchCreditIsTheReceiversFault(t *testing.T) {
	t.Parallel()
	l := credit.NewLedger(1)
	if err := l.Add(1<<24 - 1); err != nil {
		t.Error(err)
	}
	for _, n := range []int{1, -1} {
		if err := l.Add(n); !errors.Is(err, credit.ErrTooMuchCredit) {
			t.Errorf("add %d: %v", n, err)
		}
	}
}
