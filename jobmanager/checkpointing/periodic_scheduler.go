package checkpointing

import (
	"math/rand/v2"
	"time"
)

// periodicScheduler says when periodic requests are due (behaviour §2): at a fixed
// rate, catching up what was late. It has one timer at a time; each arming has a
// number, so that a timer that was replaced is recognized. Only its coordinator
// calls it.
type periodicScheduler struct {
	base     time.Duration // 0: no periodic checkpoints at all
	backlog  time.Duration // while a source works off a backlog; 0: none meanwhile
	minPause time.Duration

	on        bool
	inBacklog bool
	armed     bool
	due       time.Time // of the armed timer
	n         uint64    // number of the last arming
}

func newPeriodicScheduler(o Options) periodicScheduler {
	var s periodicScheduler
	s.take(o)
	return s
}

// take sets the intervals.
func (s *periodicScheduler) take(o Options) {
	s.minPause, s.base, s.backlog = o.minPause(), 0, 0
	if o.Interval == 0 {
		return
	}
	s.base = max(o.Interval, s.minPause)
	s.backlog = s.base
	if o.BacklogIntervalSet && o.BacklogInterval == 0 {
		s.backlog = 0
	} else if o.BacklogIntervalSet {
		s.backlog = max(o.BacklogInterval, s.minPause)
	}
}

// key names the armed timer.
func (s *periodicScheduler) key() TimerKey { return TimerKey{Kind: PeriodicTimer, N: s.n} }

// interval is the one in force; 0 means none.
func (s *periodicScheduler) interval() time.Duration {
	if s.inBacklog {
		return s.backlog
	}
	return s.base
}

// start arms the first timer after a random delay in [min-pause, base interval].
func (s *periodicScheduler) start(now time.Time, r *rand.Rand) []Action {
	s.on = true
	if s.base == 0 {
		return nil
	}
	return s.arm(now.Add(s.minPause + time.Duration(r.Int64N(int64(s.base-s.minPause)+1))))
}

// stop cancels the timer.
func (s *periodicScheduler) stop() []Action {
	s.on = false
	return s.disarm()
}

// fired says whether a timer is the current one; if so the next is armed and a
// request is due.
func (s *periodicScheduler) fired(now time.Time, key TimerKey) (current bool, out []Action) {
	if !s.armed || key != s.key() {
		return false, nil
	}
	s.armed = false
	if every := s.interval(); every > 0 {
		due := s.due.Add(every)
		out = s.arm(due)
		if due.Before(now) {
			out = []Action{ArmTimer{Key: s.key(), At: now}}
		}
	}
	return true, out
}

// postpone moves the timer; later ones count from there.
func (s *periodicScheduler) postpone(now time.Time, delay time.Duration) []Action {
	if !s.on {
		return nil
	}
	return append(s.disarm(), s.arm(now.Add(delay))...)
}

// setBacklog says whether any source works off a backlog.
func (s *periodicScheduler) setBacklog(now time.Time, backlog bool) []Action {
	before := s.interval()
	s.inBacklog = backlog
	return s.changed(now, before)
}

// setOptions takes other intervals. Without any, the timer is cancelled.
func (s *periodicScheduler) setOptions(now time.Time, o Options) []Action {
	before := s.interval()
	s.take(o)
	if s.base == 0 {
		return s.disarm()
	}
	return s.changed(now, before)
}

// changed moves the timer, if the interval in force is another one than before and asks
// for a checkpoint sooner.
func (s *periodicScheduler) changed(now time.Time, before time.Duration) []Action {
	every := s.interval()
	if !s.on || every == before || every == 0 {
		return nil
	}
	if due := now.Add(every); !s.armed || due.Before(s.due) {
		return append(s.disarm(), s.arm(due)...)
	}
	return nil
}

func (s *periodicScheduler) arm(due time.Time) []Action {
	s.n++
	s.armed, s.due = true, due
	return []Action{ArmTimer{Key: s.key(), At: due}}
}

func (s *periodicScheduler) disarm() []Action {
	if !s.armed {
		return nil
	}
	s.armed = false
	return []Action{CancelTimer{Key: s.key()}}
}
