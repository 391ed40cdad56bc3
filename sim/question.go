package sim

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"
)

// Asked is a step's question and what the seed answered.
type Asked struct {
	Key    [sha256.Size]byte // of the question
	Answer string
}

// chooser answers questions: each step's draws are a function of the seed and of the step's
// question alone. It is not one stream, in which a draw more or less would change all that
// comes after, whatever is asked.
type chooser struct {
	seed   uint64
	source *rand.PCG
	asked  []Asked
	age    time.Duration // of the last question
	nth    int           // question of this age
	from   int           // line of the trace
	passed time.Duration // since the question
}

func newChooser(seed uint64) chooser { return chooser{seed: seed, source: rand.NewPCG(seed, 0)} }

// ask begins a step's choices. What is asked is everything that a choice may depend on:
// the simulated time, what could happen next, who is up, in which moment of a checkpoint.
func (w *World) ask() {
	c := &w.chooser
	if age := w.age(); age != c.age {
		c.age, c.nth = age, 0
	}
	c.nth++
	key := sha256.Sum256([]byte(w.question()))
	c.source.Seed(binary.LittleEndian.Uint64(key[:]), binary.LittleEndian.Uint64(key[8:]))
	c.asked = append(c.asked, Asked{Key: key})
	c.from, c.passed = len(w.lines), 0
}

// chosen notes what the last question was answered with: the first thing that its step
// made happen. What a rush does after that is no answer to it: whoever the first woke runs
// at the same time.
func (w *World) chosen(format string, args ...any) {
	c := &w.chooser
	if n := len(c.asked); n > 0 && c.asked[n-1].Answer == "" {
		c.asked[n-1].Answer = fmt.Sprintf(format, args...)
	}
}

// answered notes what a question led to of which nothing was chosen: the first line of the
// trace that its step wrote, or how much time passed.
func (w *World) answered() {
	c := &w.chooser
	if len(c.asked) == 0 || c.asked[len(c.asked)-1].Answer != "" {
		return
	}
	last := &c.asked[len(c.asked)-1]
	if last.Answer = fmt.Sprintf("passed %s", c.passed); len(w.lines) > c.from {
		fields := strings.Fields(w.lines[c.from])
		last.Answer = strings.Join(fields[:min(3, len(fields))], " ")
	}
}

// question describes what a step is asked. Nothing that is random in a process is in it.
func (w *World) question() string {
	var b strings.Builder
	pending, linked := w.oracle.moments()
	fmt.Fprintf(&b, "%d %d %d %v %v %v %v %v %v\n", w.chooser.seed, w.age(), w.chooser.nth, w.healed, pending, linked, w.linking(),
		w.noticeAt.IsZero(), w.now().After(w.nextOne))
	fmt.Fprintln(&b, w.snipes, len(w.cuts), len(w.stalled))
	leader := w.oracle.leader()
	for _, p := range append(w.jms[:len(w.jms):len(w.jms)], w.tms...) {
		fmt.Fprintln(&b, p.name, p.number, p.dead(), p == leader, w.now().Before(p.restartAt))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range w.mu.names {
		if w.deliverable(w.mu.pipes[name]) {
			fmt.Fprintln(&b, name)
		}
	}
	for _, c := range w.mu.calls {
		if w.answerable(c) {
			fmt.Fprintln(&b, c.name)
		}
	}
	return b.String()
}

// random is what a process that starts now draws of: the seed's, so that what a process
// draws, such as ids and pauses, is the same in each life.
func (w *World) random() io.Reader {
	var seed [32]byte
	for i := range 4 {
		binary.LittleEndian.PutUint64(seed[8*i:], w.rng.Uint64())
	}
	return rand.NewChaCha8(seed)
}

// plain leaves out of a name what is random in a process, such as a job's id: runs of
// eight hexadecimal digits and more.
func plain(name string) string {
	var b strings.Builder
	run := 0 // hexadecimal digits before i
	end := func(i int) {
		if run >= 8 {
			b.WriteByte('*')
		} else {
			b.WriteString(name[i-run : i])
		}
		run = 0
	}
	for i := range len(name) {
		if c := name[i]; c >= '0' && c <= '9' || c >= 'a' && c <= 'f' {
			run++
			continue
		}
		end(i)
		b.WriteByte(name[i])
	}
	end(len(name))
	return b.String()
}
