package checkpointdemo

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/connector/generator"
	"github.com/weirflow/weir/flow"
	"github.com/weirflow/weir/operator"
)

// Names in the job, for those who look at its checkpoints.
const (
	Name           = "checkpoint-demo"
	SourceOperator = "datagen"
	CountOperator  = "count"
	TallyState     = "tally"
)

// defaultSize is the default of the parameter size.
const defaultSize = "1KB"

// Params are the job's parameters.
type Params struct {
	Rate        float64       `default:"2000" help:"records per second in all; 0: as fast as possible"`
	Size        flow.Size     `default:"1KB" help:"bytes of a record, about"`
	Keys        int           `default:"16" help:"number of keys"`
	Sleep       time.Duration `default:"0s" help:"time that each record takes, for back pressure"`
	SleepIn     string        `default:"count" help:"the operator that is slow: count or map"`
	Parallelism int           `default:"2" help:"subtasks of each operator"`
	Records     int64         `default:"0" help:"number of records; the sources stay after the last one; 0: without end"`
}

// Job is the entry point.
var Job = flow.Define(Name, build).Help("counts generated records by key; shows checkpoints with and without back pressure")

// Pace makes the function that a counter calls to take its time over a record, instead of
// sleeping.
type Pace func(r *flow.Runtime) func(time.Duration)

// Paced is the same job under another name, with counters of another pace, for example one
// that notes when each record was processed.
func Paced(name string, pace Pace) flow.Job {
	return flow.Define(name, func(g *flow.Graph, p Params) error { return buildPaced(g, p, pace) })
}

// Event is a record.
type Event struct {
	Number int64
	Key    string
	Filler string // makes the record as large as wanted
}

// Total is a key's tally after one more record.
type Total struct {
	Key string
	Tally
}

func (p Params) validate() error {
	var faults []error
	bad := func(name string, v any, want string) {
		faults = append(faults, fmt.Errorf("%w: parameter %q is %v, want %s", operator.ErrBadParams, name, v, want))
	}
	if !(p.Rate >= 0 && p.Rate <= 1e9) {
		bad("rate", p.Rate, "0 to 1e9")
	}
	if p.Size > 64<<20 {
		bad("size", p.Size, "at most 64MiB")
	}
	if p.Keys < 1 || p.Keys > 1e7 {
		bad("keys", p.Keys, "1 to 10000000")
	}
	if p.Sleep < 0 || p.Sleep > time.Minute {
		bad("sleep", p.Sleep, "0 to 1m")
	}
	if p.SleepIn != "count" && p.SleepIn != "map" {
		bad("sleep-in", p.SleepIn, "count or map")
	}
	if p.Parallelism < 1 {
		bad("parallelism", p.Parallelism, "1 or more")
	}
	if p.Records < 0 {
		bad("records", p.Records, "0 or more")
	}
	return errors.Join(faults...)
}

func build(g *flow.Graph, p Params) error {
	return buildPaced(g, p, func(*flow.Runtime) func(time.Duration) { return time.Sleep })
}

func buildPaced(g *flow.Graph, p Params, pace Pace) error {
	if err := p.validate(); err != nil {
		return err
	}
	sleep := map[string]time.Duration{p.SleepIn: p.Sleep}
	width := flow.Parallelism(p.Parallelism)
	source := generator.New(generator.Options{Rate: p.Rate, Records: p.Records}, newEvents(p))
	events := flow.From(g, SourceOperator, source, width)
	byKey := flow.KeyBy(events, "by-key", func(e Event) string { return e.Key })
	totals := flow.Process(byKey, CountOperator, func(s *flow.Setup) flow.Processor[string, Event, Total] {
		return &counter{tally: flow.NewValue[Tally](s, TallyState), sleep: sleep["count"], pace: pace}
	}, width)
	told := flow.MapWith(totals, "announce", &announcer{sleep: sleep["map"]}, width)
	flow.To(told, "discard", flow.Discard[Total](), width)
	return nil
}

// newEvents returns the function that makes events of numbers.
func newEvents(p Params) func(n int64) Event {
	keys := make([]string, p.Keys)
	for i := range keys {
		keys[i] = KeyName(i)
	}
	const overhead = 16 // of number, key and lengths, about
	filler := make([]byte, max(0, int(p.Size)-overhead))
	random := rand.New(rand.NewPCG(1, 2))
	for i := range filler {
		filler[i] = byte('a' + random.IntN(26))
	}
	text := string(filler)
	return func(n int64) Event {
		return Event{Number: n, Key: keys[n%int64(len(keys))], Filler: text}
	}
}

// counter counts the records of each key, and all that it has processed.
type counter struct {
	tally     *flow.Value[Tally]
	sleep     time.Duration
	pace      Pace
	take      func(time.Duration)
	processed int64
}

// Open implements [flow.Opener].
func (c *counter) Open(r *flow.Runtime) error {
	c.take = c.pace(r)
	return nil
}

// Process implements [flow.Processor].
func (c *counter) Process(ctx *flow.Context[string], e Event, out *flow.Out[Total]) error {
	if c.sleep > 0 {
		c.take(c.sleep)
	}
	t := c.tally.Get()
	t.Count++
	t.Sum += e.Number
	c.tally.Set(t)
	c.processed++
	out.Emit(Total{ctx.Key(), t})
	return nil
}

// SnapshotState implements [flow.StateKeeper].
func (c *counter) SnapshotState() ([][]byte, error) {
	return [][]byte{binary.AppendUvarint(nil, uint64(c.processed))}, nil
}

// RestoreState implements [flow.StateKeeper]: what several counters had processed may
// be one's now, and the other way round.
func (c *counter) RestoreState(elements [][]byte) error {
	for _, b := range elements {
		n, err := readProcessed(b)
		if err != nil {
			return err
		}
		c.processed += n
	}
	return nil
}

// announcer hands records on and is told of completed checkpoints.
type announcer struct {
	sleep     time.Duration
	log       *zap.Logger
	completed operator.Counter
	records   int64
}

// Open implements [flow.Opener].
func (a *announcer) Open(r *flow.Runtime) error {
	a.log = r.Logger()
	a.completed = r.Counter("completed_checkpoints")
	return nil
}

// Map implements [flow.Mapper].
func (a *announcer) Map(t Total) (Total, error) {
	if a.sleep > 0 {
		time.Sleep(a.sleep)
	}
	a.records++
	return t, nil
}

// NotifyComplete implements [flow.CheckpointListener].
func (a *announcer) NotifyComplete(id weir.CheckpointID) error {
	a.completed.Add(1)
	a.log.Debug("told of a completed checkpoint", zap.Int64("checkpoint", int64(id)), zap.Int64("records", a.records))
	return nil
}
