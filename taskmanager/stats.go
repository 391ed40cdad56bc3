package taskmanager

import (
	"time"

	"github.com/weirflow/weir/metrics"
	"github.com/weirflow/weir/rpc"
)

// sample is what a task had done when its ratios were last worked out.
type sample struct {
	at      time.Time
	figures metrics.TaskFigures
}

// stats are the figures of all tasks that run, in the order of their ids.
func (l *loop) stats(now time.Time) []rpc.TaskStats {
	var all []rpc.TaskStats
	for _, a := range l.sorted() {
		if a.task != nil && !a.life.State().Final() {
			all = append(all, a.stats(now))
		}
	}
	return all
}

func (a *attempt) stats(now time.Time) rpc.TaskStats {
	f, last := a.task.Figures(), a.sampled
	a.sampled = sample{now, f}
	s := rpc.TaskStats{
		Attempt: a.id, RecordsIn: f.RecordsIn, RecordsOut: f.RecordsOut, BytesIn: f.BytesIn, BytesOut: f.BytesOut,
		BytesQueuedIn: f.QueuedIn, BytesQueuedOut: f.QueuedOut, BuffersInUse: f.BuffersInUse,
		OutPoolUsage: min(f.OutPoolUsage, 1), InPoolUsage: min(f.InPoolUsage, 1),
	}
	busy, idle, waits := f.Busy-last.figures.Busy, f.Idle-last.figures.Idle, f.BackPressured-last.figures.BackPressured
	if all := busy + idle + waits; all > 0 {
		s.BusyRatio = ratio(busy, all)
		s.IdleRatio = ratio(idle, all)
		s.BackPressured = ratio(waits, all)
		s.HardBackPressured = ratio(f.HardBackPressured-last.figures.HardBackPressured, all)
		s.SoftBackPressured = max(0, s.BackPressured-s.HardBackPressured)
	}
	return s
}

func ratio(part, all time.Duration) float64 {
	return min(max(float64(part)/float64(all), 0), 1)
}
