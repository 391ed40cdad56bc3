package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/bench/figures"
	"github.com/weirflow/weir/blobstore/fs"
	"github.com/weirflow/weir/jobmanager/checkpointing/store"
	"github.com/weirflow/weir/snapshotmeta"
)

const (
	vertices = 10
	inline   = 4 << 10 // bytes of each subtask's state, inside _metadata
	bar      = 32      // MiB that the process may grow
)

// cost is what one phase has taken.
type cost struct {
	Seconds float64
	Growth  float64 // MiB, resident
	Bytes   int64   // of _metadata
}

func main() {
	var subtasks int
	var phase, dir string
	broken := false
	code := figures.Main(os.Args[1:], os.Stdout, os.Stderr,
		func(flags *flag.FlagSet) {
			flags.IntVar(&subtasks, "subtasks", 10_000, "how many")
			flags.StringVar(&phase, "phase", "", "run one phase: write, walk or verify")
			flags.StringVar(&dir, "dir", "", "directory of a phase")
		},
		func() ([]figures.Figure, error) {
			if phase != "" {
				c, err := run(phase, dir, subtasks)
				if err == nil {
					err = json.NewEncoder(os.Stderr).Encode(c)
				}
				return nil, err
			}
			list, over, err := all(subtasks)
			broken = over
			return list, err
		})
	if code == 0 && broken {
		fmt.Fprintf(os.Stderr, "a phase grew by more than %d MiB\n", bar)
		code = 1
	}
	os.Exit(code)
}

// all runs the phases, each in a process.
func all(subtasks int) (list []figures.Figure, over bool, err error) {
	dir, err := os.MkdirTemp("", "weir-metadata-")
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, phase := range []string{"write", "walk", "verify"} {
		cmd := exec.Command(os.Args[0], "-phase", phase, "-dir", dir, "-subtasks", strconv.Itoa(subtasks))
		out, err := cmd.StderrPipe()
		if err != nil {
			return nil, false, err
		}
		if err := cmd.Start(); err != nil {
			return nil, false, err
		}
		said, err := io.ReadAll(io.LimitReader(out, 64<<10))
		if werr := cmd.Wait(); werr != nil {
			return nil, false, fmt.Errorf("%s: %w: %s", phase, werr, said)
		}
		var c cost
		if err == nil {
			err = json.Unmarshal(said, &c)
		}
		if err != nil {
			return nil, false, fmt.Errorf("%s: %w", phase, err)
		}
		over = over || c.Growth > bar
		list = append(list,
			figures.Figure{Name: "metadata/" + phase + "/growth", Value: c.Growth, Unit: "MiB", Aim: bar, Note: "resident, highest during the phase"},
			figures.Figure{Name: "metadata/" + phase + "/time", Value: c.Seconds, Unit: "s"})
		if phase == "write" {
			list = append(list, figures.Figure{Name: "metadata/size", Value: float64(c.Bytes) / (1 << 20), Unit: "MiB", Note: fmt.Sprintf("of %d subtasks", subtasks)})
		}
	}
	return list, over, nil
}

// run is one phase.
func run(phase, dir string, subtasks int) (c cost, err error) {
	blobs, err := fs.Open(dir)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, blobs.Close()) }()
	ctx := context.Background()
	name := snapshotmeta.MetadataName(weir.JobID{1}, 7)
	var s *snapshotmeta.Snapshot
	if phase == "write" {
		if s, err = snapshot(subtasks); err != nil {
			return c, err
		}
	}
	debug.FreeOSMemory()
	before, err := resident("VmRSS")
	if err == nil {
		err = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // begin a new highest
	}
	if err != nil {
		return c, err
	}
	begun := time.Now()
	switch phase {
	case "write":
		var m store.Metadata
		m, err = store.NewMetadataStore(blobs).Write(ctx, s)
		c.Bytes = m.Bytes
	case "walk":
		_, err = snapshotmeta.Walk(ctx, blobs, name, snapshotmeta.Visitor{})
	case "verify":
		_, err = snapshotmeta.Verify(ctx, blobs, filepath.Dir(name), func(d snapshotmeta.Damage) error { return d.Err })
	default:
		err = fmt.Errorf("no phase %q", phase)
	}
	c.Seconds = time.Since(begun).Seconds()
	highest, herr := resident("VmHWM")
	c.Growth = float64(highest-before) / 1024
	return c, errors.Join(err, herr)
}

// resident reads a figure of this process, in KiB.
func resident(what string) (int64, error) {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), what+":"); ok {
			return strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 10, 64)
		}
	}
	return 0, fmt.Errorf("no %s in /proc/self/status", what)
}

// snapshot makes one up.
func snapshot(subtasks int) (*snapshotmeta.Snapshot, error) {
	h := snapshotmeta.Header{Job: weir.JobID{1}, Checkpoint: 7, Entrypoint: "bench"}
	parallelism := max(subtasks/vertices, 1)
	for v := range vertices {
		name := fmt.Sprint("operator-", v)
		h.Vertices = append(h.Vertices, snapshotmeta.Vertex{
			Name: name, Parallelism: parallelism, MaxParallelism: weir.MaxMaxParallelism,
			Operators: []snapshotmeta.OperatorRef{{ID: weir.OperatorIDOf(name), Name: name}},
		})
	}
	s := snapshotmeta.New(h)
	for v := range vertices {
		for i := range parallelism {
			state := make([]byte, inline)
			copy(state, fmt.Sprint(v, i))
			sum := crc32.Checksum(state, crc32.MakeTable(crc32.Castagnoli))
			op := weir.OperatorSubtaskState{
				Operator: s.Operators[v].ID, Name: s.Operators[v].Name,
				Keyed: []weir.KeyedStateHandle{{
					Range: weir.KeyGroupRangeOf(weir.MaxMaxParallelism, parallelism, i), Backend: "heap",
					Handle: weir.StateHandle{Inline: state, Length: inline, CRC: sum},
				}},
				Schemas: []weir.StateSchema{{State: "count", Key: "string", Value: "int64"}},
			}
			err := s.AddTask(weir.SubtaskID{Vertex: int32(v), Subtask: int32(i)}, weir.TaskStateSnapshot{Operators: []weir.OperatorSubtaskState{op}})
			if err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}
