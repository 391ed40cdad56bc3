package cli

import (
	"encoding/json"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/snapshotmeta"
)

func crcOf(b string) uint32 { return crc32.Checksum([]byte(b), crc32.MakeTable(crc32.Castagnoli)) }

func inlineHandle(b string) weir.StateHandle {
	return weir.StateHandle{Inline: []byte(b), Length: int64(len(b)), CRC: crcOf(b)}
}

// sampleSnapshot is a job's checkpoint 7 with a source, a counter and data in flight.
func sampleSnapshot(t *testing.T) *snapshotmeta.Snapshot {
	t.Helper()
	numbers, count := weir.OperatorIDOf("numbers"), weir.OperatorIDOf("count")
	s := snapshotmeta.New(snapshotmeta.Header{
		Job: weir.JobID{1}, JobName: "demo", Checkpoint: 7, Entrypoint: "checkpoint-demo", Params: map[string]string{"rate": "10"}, CodeID: "code",
		Hooks: []snapshotmeta.Hook{{Name: "schema-registry", State: []byte("v7")}},
		Vertices: []snapshotmeta.Vertex{
			{Name: "numbers", Parallelism: 2, MaxParallelism: 128, Operators: []snapshotmeta.OperatorRef{{ID: numbers, Name: "numbers"}}},
			{Name: "count", Parallelism: 1, MaxParallelism: 64, Operators: []snapshotmeta.OperatorRef{{ID: count, Name: "count"}}},
		},
		Triggered: time.UnixMilli(1_700_000_000_000), Completed: time.UnixMilli(1_700_000_000_500),
	})
	s.Operator(numbers).Coordinator = inlineHandle("rest")
	add := func(v, i int32, state weir.TaskStateSnapshot) {
		if err := s.AddTask(weir.SubtaskID{Vertex: v, Subtask: i}, state); err != nil {
			t.Fatal(err)
		}
	}
	add(0, 0, weir.TaskStateSnapshot{Operators: []weir.OperatorSubtaskState{{Operator: numbers, Elements: []weir.StateHandle{inlineHandle("split"), inlineHandle("other")}}}})
	add(0, 1, weir.TaskStateSnapshot{Finished: true})
	keyed := "keyed state"
	add(1, 0, weir.TaskStateSnapshot{
		Operators: []weir.OperatorSubtaskState{{
			Operator: count, Schemas: []weir.StateSchema{{State: "total", Key: "string", Value: "int64"}},
			Keyed: []weir.KeyedStateHandle{{Range: weir.KeyGroupRange{Last: 63}, Backend: "heap",
				Handle: weir.StateHandle{File: "chk-7/v1.sst", Offset: 2, Length: int64(len(keyed)), CRC: crcOf(keyed)}}},
		}},
		Channels: []weir.ChannelStateHandle{{
			Edge: weir.EdgeID{From: "numbers", To: "count"}, Handle: weir.StateHandle{File: "chk-7/v1.seq", Length: 4, CRC: crcOf("data")},
		}},
	})
	return s
}

// putSnapshot writes it with its files, and returns its directory.
func putSnapshot(t *testing.T, s *snapshotmeta.Snapshot) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), s.Header.Job.String(), "chk-7")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var content strings.Builder
	if err := snapshotmeta.Write(&content, s); err != nil {
		t.Fatal(err)
	}
	for name, bytes := range map[string]string{snapshotmeta.MetadataFile: content.String(), "v1.sst": "..keyed state..", "v1.seq": "data"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(bytes), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestInspectShowsWhatASnapshotHolds(t *testing.T) {
	t.Parallel()
	dir := putSnapshot(t, sampleSnapshot(t))
	for _, path := range []string{dir, dir + "/", filepath.Join(dir, snapshotmeta.MetadataFile)} {
		c := newCommand()
		if code := c.run(t.Context(), "checkpoint", "inspect", path); code != ExitOK {
			t.Fatalf("%s: exit code %d: %s", path, code, c.stderr.String())
		}
		for _, want := range []string{
			"checkpoint 7 of job demo (01000000000000000000000000000000)", "checkpoint-demo  rate=10", "completed    2023-11-14T22:13:20.5Z",
			"size         29 B of state (4 B in flight, 14 B inside",
			"numbers             2  128         1    0 B  10 B (2)    4 B\n", "count               1   64         0   11 B   0 B (0)    0 B  total(string → int64)",
			"in flight  numbers → count (input 0)  4 B of 1 ends", "hook  schema-registry  2 B", "file  chk-7/v1.sst  11 B in 1 parts",
		} {
			if !strings.Contains(c.stdout.String(), want) {
				t.Errorf("no %q in\n%s", want, c.stdout.String())
			}
		}
	}
	c := newCommand()
	if code := c.run(t.Context(), "checkpoint", "inspect", dir, "-o", "json"); code != ExitOK {
		t.Fatal(c.stderr.String())
	}
	var in inspectionJSON
	if err := json.Unmarshal(c.stdout.Bytes(), &in); err != nil {
		t.Fatal(err)
	}
	if in.Checkpoint != 7 || in.Kind != "checkpoint" || len(in.Operators) != 2 || in.Operators[0].Finished != 1 || in.Operators[1].Backend != "heap" ||
		len(in.Files) != 2 || in.InFlight[0].Bytes != 4 || in.Operators[1].States[0].Value != "int64" || in.StateBytes != 29 {
		t.Errorf("%s", c.stdout.String())
	}
}

func TestVerifyReadsEveryPart(t *testing.T) {
	t.Parallel()
	write := func(t *testing.T, dir, name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		harm  func(t *testing.T, dir string)
		fault string // of one part; empty: none
		of    string
	}{
		"whole":       {func(*testing.T, string) {}, "", ""},
		"missing":     {func(t *testing.T, dir string) { _ = os.Remove(filepath.Join(dir, "v1.sst")) }, "missing", "count[0]"},
		"cut":         {func(t *testing.T, dir string) { write(t, dir, "v1.sst", "..keyed") }, "cut", "count[0]"},
		"flipped bit": {func(t *testing.T, dir string) { write(t, dir, "v1.sst", "..keyed stata..") }, "corrupt", "count[0]"},
		"in flight":   {func(t *testing.T, dir string) { write(t, dir, "v1.seq", "dota") }, "corrupt", "in flight from numbers[0] to count[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := putSnapshot(t, sampleSnapshot(t))
			c.harm(t, dir)
			cmd := newCommand()
			code := cmd.run(t.Context(), "checkpoint", "verify", dir, "-o", "json")
			var v verificationJSON
			if err := json.Unmarshal(cmd.stdout.Bytes(), &v); err != nil {
				t.Fatalf("%v: %s", err, cmd.stderr.String())
			}
			if v.Parts != 5 || v.Files != 2 || v.Bytes != 29 || v.OK != (c.fault == "") || (code == ExitOK) != v.OK {
				t.Errorf("exit code %d, %+v", code, v)
			}
			if c.fault != "" && (len(v.Damage) != 1 || v.Damage[0].Fault != c.fault || v.Damage[0].Owner != c.of) {
				t.Errorf("damage %+v, want %s of %s", v.Damage, c.fault, c.of)
			}
			text := newCommand()
			text.run(t.Context(), "checkpoint", "verify", dir)
			want := "is whole: 2 files, 5 parts"
			if c.fault != "" {
				want = c.of
			}
			if !strings.Contains(text.stdout.String(), want) {
				t.Errorf("no %q in %s%s", want, text.stdout.String(), text.stderr.String())
			}
		})
	}
}

func TestWhatIsNoSnapshotIsAClearError(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		harm func(t *testing.T, file string, content []byte)
		want string
	}{
		"absent":      {func(t *testing.T, file string, _ []byte) { _ = os.RemoveAll(filepath.Dir(file)) }, "nothing at this path"},
		"no metadata": {func(t *testing.T, file string, _ []byte) { _ = os.Remove(file) }, "was never complete"},
		"other file":  {func(t *testing.T, file string, _ []byte) { _ = os.WriteFile(file, []byte("#!/bin/sh"), 0o644) }, "this is no snapshot"},
		"cut":         {func(t *testing.T, file string, b []byte) { _ = os.WriteFile(file, b[:len(b)/2], 0o644) }, "it is cut"},
		"flipped bit": {func(t *testing.T, file string, b []byte) { b[len(b)-20] ^= 1; _ = os.WriteFile(file, b, 0o644) }, "it is damaged"},
		"newer":       {func(t *testing.T, file string, b []byte) { b[8] = 9; _ = os.WriteFile(file, b, 0o644) }, "format version 9"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := putSnapshot(t, sampleSnapshot(t))
			file := filepath.Join(dir, snapshotmeta.MetadataFile)
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			c.harm(t, file, content)
			for _, verb := range []string{"inspect", "verify"} {
				cmd := newCommand()
				code := cmd.run(t.Context(), "checkpoint", verb, dir)
				if code != ExitFailure || !strings.Contains(cmd.stderr.String(), c.want) || !strings.Contains(cmd.stderr.String(), "hint: ") {
					t.Errorf("%s: exit code %d: %s", verb, code, cmd.stderr.String())
				}
			}
		})
	}
}
