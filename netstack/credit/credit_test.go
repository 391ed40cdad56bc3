package credit_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

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

// message is on its way from sender to receiver.
type message struct {
	event    bool
	backlog  int
	sequence uint32
}

// TestBothEndsAgree lets both ends live over a loss-free connection with delays, and
// compares them with a count of buffers and messages.
func TestBothEndsAgree(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		exclusive := rapid.IntRange(1, 3).Draw(t, "exclusive")
		there := rapid.IntRange(0, exclusive).Draw(t, "there")
		pool := rapid.IntRange(0, 5).Draw(t, "pool")
		grants, ledger := credit.NewGrants(exclusive, there), credit.NewLedger(there)
		owed := exclusive - there // exclusive buffers that the pool has not delivered
		var down []message        // data on its way
		var up []int              // credit on its way
		queued := 0               // data at the sender
		busy := map[credit.Kind]int{}
		announced, unannounced, dataDown := there, 0, 0
		var expected uint32
		request := func() {
			for grants.Missing() > 0 && pool > 0 {
				pool--
				if due := grants.Got(); due != (unannounced == 0) {
					t.Fatal("announcement due at the wrong time")
				}
				unannounced++
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"produce": func(t *rapid.T) { queued += rapid.IntRange(1, 3).Draw(t, "n") },
			"send data": func(t *rapid.T) {
				if queued == 0 || !ledger.MaySend(false) {
					t.Skip()
				}
				queued--
				announced--
				dataDown++
				down = append(down, message{false, queued, ledger.Spend(false)})
			},
			"send event": func(t *rapid.T) {
				if !ledger.MaySend(true) {
					t.Fatal("an event needs no credit")
				}
				down = append(down, message{true, queued, ledger.Spend(true)})
			},
			"receive": func(t *rapid.T) {
				if len(down) == 0 {
					t.Skip()
				}
				m := down[0]
				down = down[1:]
				if m.sequence != expected {
					t.Fatalf("message %d, expected %d", m.sequence, expected)
				}
				expected++
				if !m.event {
					kind, err := grants.Take()
					if err != nil {
						t.Fatal(err)
					}
					busy[kind]++
					dataDown--
				}
				grants.Backlog(m.backlog)
				request()
			},
			"recycle exclusive": func(t *rapid.T) {
				if busy[credit.Exclusive] == 0 {
					t.Skip()
				}
				busy[credit.Exclusive]--
				giveUp, due := grants.Recycled()
				switch {
				case giveUp:
					pool++
				case due != (unannounced == 0):
					t.Fatal("announcement due at the wrong time")
				default:
					unannounced++
				}
			},
			"recycle floating": func(t *rapid.T) {
				if busy[credit.Floating] == 0 {
					t.Skip()
				}
				busy[credit.Floating]--
				pool++
				request()
			},
			"owed exclusive comes": func(t *rapid.T) {
				if owed == 0 {
					t.Skip()
				}
				owed--
				if giveUp, _ := grants.Recycled(); giveUp {
					pool++
				} else {
					unannounced++
				}
			},
			"announce": func(t *rapid.T) {
				n := grants.Announce()
				if n != unannounced {
					t.Fatalf("announces %d of %d", n, unannounced)
				}
				unannounced = 0
				if n > 0 {
					up = append(up, n)
				}
			},
			"credit arrives": func(t *rapid.T) {
				if len(up) == 0 {
					t.Skip()
				}
				announced += up[0]
				if err := ledger.Add(up[0]); err != nil {
					t.Fatal(err)
				}
				up = up[1:]
			},
			"": func(t *rapid.T) {
				onTheWay := 0
				for _, n := range up {
					onTheWay += n
				}
				if ledger.Credit() != announced {
					t.Fatalf("credit %d, model %d", ledger.Credit(), announced)
				}
				// Never more in flight than is free for it, and nothing free is forgotten.
				if got := ledger.Credit() + dataDown + onTheWay + unannounced; got != grants.Free() {
					t.Fatalf("%d at the sender + %d in flight + %d on the way + %d unannounced, but %d free",
						ledger.Credit(), dataDown, onTheWay, unannounced, grants.Free())
				}
			},
		})
	})
}
