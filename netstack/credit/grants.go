package credit

import "github.com/weirflow/weir/internal/assert"

// Kind says whose a buffer is.
type Kind uint8

// Kinds of buffers.
const (
	Exclusive Kind = iota // the channel's own
	Floating              // shared by the channels of a gate
)

// Grants is the receiver's side of one channel. Its gate calls it, under its lock.
type Grants struct {
	exclusive     int // E: how many exclusive buffers the channel has in all
	freeExclusive int
	freeFloating  int
	required      int // free buffers that the sender's backlog asks for
	unannounced   int // free buffers that the sender does not know of
}

// NewGrants makes the grants of a channel with E exclusive buffers, of which so many
// are there and announced by opening the channel. The others come with Recycled.
func NewGrants(exclusive, there int) Grants {
	assert.That(0 <= there && there <= exclusive, "%d of %d exclusive buffers", there, exclusive)
	return Grants{exclusive: exclusive, freeExclusive: there, required: exclusive}
}

// Free is the number of free buffers.
func (g *Grants) Free() int { return g.freeExclusive + g.freeFloating }

// Missing is how many floating buffers the channel would take.
func (g *Grants) Missing() int { return max(0, g.required-g.Free()) }

// Backlog takes the sender's backlog. Afterwards Missing floating buffers are to be
// requested, and each told by Got.
func (g *Grants) Backlog(n int) { g.required = n + g.exclusive }

// GiveUp is for a channel without exclusive buffers whose sender stops: what is free is
// to be given back, and what of it was announced counts no more. The sender starts
// again without credit.
func (g *Grants) GiveUp() (floating int) {
	assert.That(g.exclusive == 0, "%d exclusive buffers", g.exclusive)
	floating = g.freeFloating
	g.freeFloating, g.unannounced, g.required = 0, 0, 0
	return floating
}

// Got takes a floating buffer. It says whether an announcement becomes due.
func (g *Grants) Got() (announce bool) {
	g.freeFloating++
	return g.gain()
}

// gain makes one free buffer known to the sender in time.
func (g *Grants) gain() (announce bool) {
	g.unannounced++
	return g.unannounced == 1
}

// Take uses a free buffer for data that came in: a floating one first. Data for which
// no buffer had been announced is the sender's fault.
func (g *Grants) Take() (Kind, error) {
	if g.Free() <= g.unannounced {
		return 0, ErrNoCredit
	}
	if g.freeFloating > 0 {
		g.freeFloating--
		return Floating, nil
	}
	g.freeExclusive--
	return Exclusive, nil
}

// Recycled takes an exclusive buffer back. If more is free than required, a floating
// buffer is to be given up in its stead and the sender learns nothing; else it says
// whether an announcement becomes due.
func (g *Grants) Recycled() (giveUp, announce bool) {
	g.freeExclusive++
	assert.That(g.freeExclusive <= g.exclusive, "%d of %d exclusive buffers free", g.freeExclusive, g.exclusive)
	if g.Free() > g.required && g.freeFloating > 0 {
		g.freeFloating--
		return true, false
	}
	return false, g.gain()
}

// MayWait says whether an announcement that is due can wait for more to gather: the
// sender has more than three times as much left, so it will not run dry, and the next
// data that arrives is the occasion to ask again.
func (g *Grants) MayWait() bool { return 4*g.unannounced < g.Free() }

// Announce returns the accumulated credit for one AddCredit message.
func (g *Grants) Announce() int {
	n := g.unannounced
	g.unannounced = 0
	return n
}
