package watermark

import "github.com/weirflow/weir"

// Valve combines watermarks and idleness. Only the task's goroutine may call it.
type Valve struct {
	channels []channel
	last     weir.Watermark // passed on
	idle     bool           // passed on
}

// channel is what one channel said.
type channel struct {
	watermark weir.Watermark
	idle      bool
	ended     bool
	behind    bool // woke with a watermark smaller than what was passed on
}

// Change is what to pass on after a call, the watermark before the status.
type Change struct {
	Advanced  bool
	Watermark weir.Watermark // if Advanced
	Toggled   bool           // the task became idle or active
	Idle      bool           // if Toggled
}

// New returns a valve for this many channels, all active and without a watermark.
func New(channels int) *Valve {
	v := &Valve{channels: make([]channel, channels), last: weir.MinWatermark}
	for i := range v.channels {
		v.channels[i].watermark = weir.MinWatermark
	}
	return v
}

// Current is the watermark passed on last.
func (v *Valve) Current() weir.Watermark { return v.last }

// Watermark takes a channel's watermark. One that goes back, or comes on an idle or
// ended channel, is ignored.
func (v *Valve) Watermark(ch int, w weir.Watermark) Change {
	c := &v.channels[ch]
	if c.ended || c.idle || w <= c.watermark {
		return Change{}
	}
	c.watermark = w
	c.behind = c.behind && w < v.last
	return v.advance()
}

// Idle takes a channel's word that it brings nothing for now.
func (v *Valve) Idle(ch int) Change {
	c := &v.channels[ch]
	if c.ended || c.idle {
		return Change{}
	}
	c.idle = true
	return v.settle()
}

// Active takes a channel's word that it brings records again.
func (v *Valve) Active(ch int) Change {
	c := &v.channels[ch]
	if c.ended || !c.idle {
		return Change{}
	}
	c.idle = false
	c.behind = c.watermark < v.last
	if !v.idle {
		return Change{}
	}
	v.idle = false
	return Change{Toggled: true}
}

// Ended takes a channel's end.
func (v *Valve) Ended(ch int) Change {
	c := &v.channels[ch]
	if c.ended {
		return Change{}
	}
	c.ended = true
	return v.settle()
}

// settle finds out what follows from a channel that does not count any more.
func (v *Valve) settle() Change {
	open, active := 0, 0
	highest := v.last
	for _, c := range v.channels {
		highest = max(highest, c.watermark)
		if c.ended {
			continue
		}
		open++
		if !c.idle {
			active++
		}
	}
	switch {
	case open == 0:
		return Change{} // the end of input follows, not idleness
	case active > 0:
		return v.advance()
	case v.idle:
		return Change{}
	}
	v.idle = true
	change := Change{Toggled: true, Idle: true}
	if highest > v.last {
		v.last = highest
		change.Advanced, change.Watermark = true, highest
	}
	return change
}

// advance passes on the minimum over the channels that count, if it grew.
func (v *Valve) advance() Change {
	lowest, any := weir.MaxWatermark, false
	for _, c := range v.channels {
		if c.ended || c.idle || c.behind {
			continue
		}
		any = true
		lowest = min(lowest, c.watermark)
	}
	if !any || lowest <= v.last {
		return Change{}
	}
	v.last = lowest
	return Change{Advanced: true, Watermark: lowest}
}
