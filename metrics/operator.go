package metrics

import (
	"strings"
	"sync"
)

// MaxUserMetrics is how many metrics of one operator's user code are shown. Further
// ones count, unseen: names made of data must not fill the memory of those who scrape.
const MaxUserMetrics = 200

// Operator makes the metrics of one operator's user code. Names may hold anything;
// what Prometheus does not allow becomes an underscore, and names that are then equal
// are one metric.
type Operator struct {
	name string

	mu struct {
		sync.Mutex
		counters map[string]*Counter // by full name
		gauges   map[string]*Gauge
	}
}

func newOperator(name string) *Operator {
	o := &Operator{name: labelValue(name)}
	o.mu.counters = make(map[string]*Counter)
	o.mu.gauges = make(map[string]*Gauge)
	return o
}

// Counter returns the counter weir_user_<name>_total.
func (o *Operator) Counter(name string) *Counter {
	full := counterName(name)
	o.mu.Lock()
	defer o.mu.Unlock()
	if c, ok := o.mu.counters[full]; ok {
		return c
	}
	c := &Counter{}
	if o.roomLocked() {
		o.mu.counters[full] = c
	}
	return c
}

// Gauge returns the gauge weir_user_<name>.
func (o *Operator) Gauge(name string) *Gauge {
	full := gaugeName(name)
	o.mu.Lock()
	defer o.mu.Unlock()
	if g, ok := o.mu.gauges[full]; ok {
		return g
	}
	g := &Gauge{}
	if o.roomLocked() {
		o.mu.gauges[full] = g
	}
	return g
}

func (o *Operator) roomLocked() bool {
	return len(o.mu.counters)+len(o.mu.gauges) < MaxUserMetrics
}

// values returns the user's metrics as they are now, by full name.
func (o *Operator) values() (counters, gauges map[string]float64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	counters = make(map[string]float64, len(o.mu.counters))
	for name, c := range o.mu.counters {
		counters[name] = float64(c.Value())
	}
	gauges = make(map[string]float64, len(o.mu.gauges))
	for name, g := range o.mu.gauges {
		gauges[name] = g.Value()
	}
	return counters, gauges
}

// counterName ends in _total, and gaugeName never does, so that no counter and gauge
// share a name: they would make every scrape fail.
func counterName(name string) string {
	return userName(strings.TrimSuffix(name, "_total")) + "_total"
}

func gaugeName(name string) string {
	full := userName(name)
	if strings.HasSuffix(full, "_total") {
		return full + "_value"
	}
	return full
}

// userName is the name with its prefix, in letters, digits and underscores.
func userName(name string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
	const maxLen = 100
	return namespace + "_user_" + clean[:min(len(clean), maxLen)]
}
