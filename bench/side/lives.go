package side

import "github.com/weirflow/weir/bench/pairs"

// samplesOfLife is how many samples a process is asked for.
const samplesOfLife = 8

// Lives is one side in one process after the other: where memory happens to lie, which
// differs by process, makes a difference of tens of percent.
type Lives struct {
	units   int
	args    []string
	process *Process
	samples int
}

// NewLives is a side whose processes are started as by [Start].
func NewLives(units int, args ...string) *Lives { return &Lives{units: units, args: args} }

// Sample asks for one sample.
func (l *Lives) Sample() pairs.Sample {
	if l.samples%samplesOfLife == 0 {
		l.Stop()
		l.process = Start(l.units, l.args...)
	}
	l.samples++
	return l.process.Sample()
}

// Stop ends the process that runs, if any.
func (l *Lives) Stop() {
	if l.process != nil {
		l.process.Stop()
	}
}
