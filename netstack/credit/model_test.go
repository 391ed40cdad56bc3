package credit_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/weirflow/weir/netstack/credit"
)

// message is on its way from sender to receiver.
type message struct {
	event    bool
	backlog  int
	sequence uint32
}

// channel is both ends, what is on its way between them, and a count of it all that
// knows nothing of how the ends count.
type channel struct {
	grants credit.Grants
	ledger credit.Ledger

	pool        int                 // free floating buffers
	owed        int                 // exclusive buffers that the pool has not delivered
	queued      int                 // data at the sender
	down        []message           // on its way to the receiver
	up          []int               // credit on its way to the sender
	busy        map[credit.Kind]int // buffers in the task's hands
	announced   int                 // credit that the sender has
	unannounced int                 // credit that it is to get
	expected    uint32              // the sequence number that comes next
}

func newChannel(t *rapid.T) *channel {
	exclusive := rapid.IntRange(1, 3).Draw(t, "exclusive")
	there := rapid.IntRange(0, exclusive).Draw(t, "there")
	return &channel{
		grants:    credit.NewGrants(exclusive, there),
		ledger:    credit.NewLedger(there),
		pool:      rapid.IntRange(0, 5).Draw(t, "pool"),
		owed:      exclusive - there,
		busy:      map[credit.Kind]int{},
		announced: there,
	}
}

func (c *channel) sendData(*rapid.T) {
	if c.queued == 0 || !c.ledger.MaySend(false) {
		return
	}
	c.queued--
	c.announced--
	c.down = append(c.down, message{false, c.queued, c.ledger.Spend(false)})
}

func (c *channel) sendEvent(t *rapid.T) {
	if !c.ledger.MaySend(true) {
		t.Fatal("an event needs no credit")
	}
	c.down = append(c.down, message{true, c.queued, c.ledger.Spend(true)})
}

func (c *channel) receive(t *rapid.T) {
	if len(c.down) == 0 {
		return
	}
	m := c.down[0]
	c.down = c.down[1:]
	if m.sequence != c.expected {
		t.Fatalf("message %d, expected %d", m.sequence, c.expected)
	}
	c.expected++
	if !m.event {
		kind, err := c.grants.Take()
		if err != nil {
			t.Fatal(err)
		}
		c.busy[kind]++
	}
	c.grants.Backlog(m.backlog)
	c.request(t)
}

// request asks the pool for what is missing.
func (c *channel) request(t *rapid.T) {
	for c.grants.Missing() > 0 && c.pool > 0 {
		c.pool--
		c.gained(t, c.grants.Got())
	}
}

// gained counts a credit that the sender is to get.
func (c *channel) gained(t *rapid.T, due bool) {
	if due != (c.unannounced == 0) {
		t.Fatalf("announcement due: %t, with %d unannounced", due, c.unannounced)
	}
	c.unannounced++
}

func (c *channel) exclusiveComes(t *rapid.T) {
	giveUp, due := c.grants.Recycled()
	if giveUp {
		c.pool++
		return
	}
	c.gained(t, due)
}

func (c *channel) recycleExclusive(t *rapid.T) {
	if c.busy[credit.Exclusive] > 0 {
		c.busy[credit.Exclusive]--
		c.exclusiveComes(t)
	}
}

func (c *channel) owedComes(t *rapid.T) {
	if c.owed > 0 {
		c.owed--
		c.exclusiveComes(t)
	}
}

func (c *channel) recycleFloating(t *rapid.T) {
	if c.busy[credit.Floating] > 0 {
		c.busy[credit.Floating]--
		c.pool++
		c.request(t)
	}
}

func (c *channel) announce(t *rapid.T) {
	n := c.grants.Announce()
	if n != c.unannounced {
		t.Fatalf("announces %d of %d", n, c.unannounced)
	}
	c.unannounced = 0
	if n > 0 {
		c.up = append(c.up, n)
	}
}

func (c *channel) creditArrives(t *rapid.T) {
	if len(c.up) == 0 {
		return
	}
	c.announced += c.up[0]
	if err := c.ledger.Add(c.up[0]); err != nil {
		t.Fatal(err)
	}
	c.up = c.up[1:]
}

// check says that never more is in flight than is free for it, and that no free
// buffer is forgotten.
func (c *channel) check(t *rapid.T) {
	inFlight, onTheWay := 0, 0
	for _, m := range c.down {
		if !m.event {
			inFlight++
		}
	}
	for _, n := range c.up {
		onTheWay += n
	}
	if c.ledger.Credit() != c.announced {
		t.Fatalf("credit %d, counted %d", c.ledger.Credit(), c.announced)
	}
	if sum := c.announced + inFlight + onTheWay + c.unannounced; sum != c.grants.Free() {
		t.Fatalf("%d at the sender + %d in flight + %d on the way + %d unannounced, but %d are free",
			c.announced, inFlight, onTheWay, c.unannounced, c.grants.Free())
	}
}

// TestBothEndsAgree lets both ends live over a loss-free connection with delays.
func TestBothEndsAgree(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := newChannel(t)
		t.Repeat(map[string]func(*rapid.T){
			"produce":           func(t *rapid.T) { c.queued += rapid.IntRange(1, 3).Draw(t, "n") },
			"send data":         c.sendData,
			"send event":        c.sendEvent,
			"receive":           c.receive,
			"recycle exclusive": c.recycleExclusive,
			"recycle floating":  c.recycleFloating,
			"owed comes":        c.owedComes,
			"announce":          c.announce,
			"credit arrives":    c.creditArrives,
			"":                  c.check,
		})
	})
}
