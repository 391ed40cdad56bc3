package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/snapshotmeta"
)

// inspectionJSON is what a snapshot holds.
type inspectionJSON struct {
	Path          string              `json:"path"`
	Job           string              `json:"job"`
	JobName       string              `json:"job_name"`
	Checkpoint    int64               `json:"checkpoint"`
	Kind          string              `json:"kind"`
	Entrypoint    string              `json:"entrypoint"`
	Params        map[string]string   `json:"params"`
	CodeID        string              `json:"code_id"`
	GraphHash     string              `json:"graph_hash"`
	Triggered     string              `json:"triggered"`
	Completed     string              `json:"completed"`
	MetadataBytes int64               `json:"metadata_bytes"`
	StateBytes    int64               `json:"state_bytes"` // in-flight data included
	InFlightBytes int64               `json:"in_flight_bytes"`
	InlineBytes   int64               `json:"inline_bytes"` // of the state, inside _metadata
	Operators     []operatorStateJSON `json:"operators"`
	InFlight      []inFlightJSON      `json:"in_flight"`
	Hooks         []hookJSON          `json:"hooks"`
	Files         []*snapshotFileJSON `json:"files"`
	byFile        map[string]int      // index in Files
	byOperator    map[weir.OperatorID]int
	byEdge        map[weir.EdgeID]int
	schemas       map[string]bool // operator and schema, seen
}

// hookJSON is the state of a master hook.
type hookJSON struct {
	Hook  string `json:"hook"`
	Bytes int    `json:"bytes"`
}

type operatorStateJSON struct {
	Operator         string            `json:"operator"`
	ID               string            `json:"id"`
	Vertex           string            `json:"vertex"`
	Parallelism      int               `json:"parallelism"`
	MaxParallelism   int               `json:"max_parallelism"`
	Subtasks         int               `json:"subtasks"` // that are recorded
	Finished         int               `json:"finished"`
	KeyedBytes       int64             `json:"keyed_bytes"`
	Backend          string            `json:"backend,omitempty"`
	Elements         int               `json:"elements"` // of its list, for example splits
	ElementBytes     int64             `json:"element_bytes"`
	CoordinatorBytes int64             `json:"coordinator_bytes"`
	States           []stateSchemaJSON `json:"states"`
}

type stateSchemaJSON struct {
	State string `json:"state"`
	Key   string `json:"key"`
	Value string `json:"value"`
}

type inFlightJSON struct {
	From     string `json:"from"`
	To       string `json:"to"`
	Input    int32  `json:"input"`
	Channels int    `json:"channels"` // captured ends
	Bytes    int64  `json:"bytes"`
}

type snapshotFileJSON struct {
	File  string `json:"file"` // relative to the job's directory
	Bytes int64  `json:"bytes"`
	Parts int    `json:"parts"`
}

func (a *app) inspectCommand() *cobra.Command {
	var files bool
	cmd := &cobra.Command{
		Use:   "inspect PATH",
		Short: "Show what a checkpoint or savepoint holds, from its files alone",
		Long: `Inspect reads the snapshot at PATH, its directory or the _metadata in it, on this machine and
without a cluster: whose it is, its operators with parallelism, maximum parallelism, states and
their schemas, what was in flight, and its files. Sizes are those of the state.

KEYED is state by key, LIST an operator's own list, such as the splits of a source with their
positions, COORD what its enumerator keeps. Checksums of files are not looked at: see verify.`,
		Example: `  weir checkpoint inspect /data/checkpoints/4f…/chk-12
  weir checkpoint inspect ./savepoint-4f12ab-x7 -o json`,
		Args: exactly(1, "the path of a snapshot"),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		in, err := inspect(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if a.json() {
			return printJSON(a.streams.Out, in)
		}
		in.print(a.streams.Out, files)
		return nil
	}
	cmd.Flags().BoolVar(&files, "files", false, "list all files")
	return cmd
}

// inspect reads a snapshot's _metadata, record by record.
func inspect(ctx context.Context, path string) (*inspectionJSON, error) {
	store, name, err := openSnapshotDir(path)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	in := &inspectionJSON{
		Path: path, Operators: []operatorStateJSON{}, InFlight: []inFlightJSON{}, Hooks: []hookJSON{}, Files: []*snapshotFileJSON{},
		byFile: map[string]int{}, byOperator: map[weir.OperatorID]int{}, byEdge: map[weir.EdgeID]int{}, schemas: map[string]bool{},
	}
	if err := in.read(ctx, store, name); err != nil {
		return nil, snapshotError(path, err)
	}
	return in, nil
}

func (in *inspectionJSON) read(ctx context.Context, store blobstore.Store, name string) error {
	_, err := snapshotmeta.Walk(ctx, store, name, snapshotmeta.Visitor{
		Header: in.header, Subtask: in.subtask, Coordinator: in.coordinator, Channel: in.channel,
	})
	if err != nil {
		return err
	}
	info, err := store.Stat(ctx, name)
	in.MetadataBytes = info.Size
	slices.SortFunc(in.Files, func(a, b *snapshotFileJSON) int { return strings.Compare(a.File, b.File) })
	return err
}

func (in *inspectionJSON) header(h *snapshotmeta.Header) error {
	in.Job, in.JobName, in.Checkpoint, in.Kind = h.Job.String(), h.JobName, int64(h.Checkpoint), h.Kind.String()
	in.Entrypoint, in.Params, in.CodeID, in.GraphHash = h.Entrypoint, h.Params, h.CodeID, h.GraphHash.String()
	in.Triggered, in.Completed = stamp(h.Triggered), stamp(h.Completed)
	if in.Params == nil {
		in.Params = map[string]string{}
	}
	for _, k := range h.Hooks {
		in.Hooks = append(in.Hooks, hookJSON{Hook: k.Name, Bytes: len(k.State)})
	}
	for _, v := range h.Vertices {
		for _, op := range v.Operators {
			in.byOperator[op.ID] = len(in.Operators)
			in.Operators = append(in.Operators, operatorStateJSON{
				Operator: op.Name, ID: op.ID.String(), Vertex: v.Name, Parallelism: v.Parallelism, MaxParallelism: v.MaxParallelism,
				States: []stateSchemaJSON{},
			})
		}
	}
	return nil
}

func (in *inspectionJSON) subtask(op *snapshotmeta.Operator, sub *snapshotmeta.Subtask) error {
	o := &in.Operators[in.byOperator[op.ID]]
	o.Subtasks++
	if sub.Finished {
		o.Finished++
	}
	for _, k := range sub.State.Keyed {
		o.Backend = k.Backend
		o.KeyedBytes += in.handle(k.Handle)
	}
	for _, e := range sub.State.Elements {
		o.Elements++
		o.ElementBytes += in.handle(e)
	}
	for _, s := range sub.State.Schemas {
		key := op.ID.String() + "\x00" + s.State + "\x00" + s.Key + "\x00" + s.Value
		if !in.schemas[key] {
			in.schemas[key] = true
			o.States = append(o.States, stateSchemaJSON{State: s.State, Key: s.Key, Value: s.Value})
		}
	}
	return nil
}

func (in *inspectionJSON) coordinator(op *snapshotmeta.Operator) error {
	in.Operators[in.byOperator[op.ID]].CoordinatorBytes = in.handle(op.Coordinator)
	return nil
}

func (in *inspectionJSON) channel(c *weir.ChannelStateHandle) error {
	at, ok := in.byEdge[c.Edge]
	if !ok {
		at = len(in.InFlight)
		in.byEdge[c.Edge] = at
		in.InFlight = append(in.InFlight, inFlightJSON{From: c.Edge.From, To: c.Edge.To, Input: c.Edge.Input})
	}
	n := in.handle(c.Handle)
	in.InFlight[at].Channels++
	in.InFlight[at].Bytes += n
	in.InFlightBytes += n
	return nil
}

// handle counts a part of the state and returns its size.
func (in *inspectionJSON) handle(h weir.StateHandle) int64 {
	if h.File == "" {
		in.InlineBytes += int64(len(h.Inline))
		in.StateBytes += int64(len(h.Inline))
		return int64(len(h.Inline))
	}
	in.StateBytes += h.Length
	at, ok := in.byFile[h.File]
	if !ok {
		at = len(in.Files)
		in.byFile[h.File] = at
		in.Files = append(in.Files, &snapshotFileJSON{File: h.File})
	}
	in.Files[at].Bytes += h.Length
	in.Files[at].Parts++
	return h.Length
}

// filesShown is how many files are listed unless all are asked for.
const filesShown = 8

func (in *inspectionJSON) print(w io.Writer, all bool) {
	fmt.Fprintf(w, "snapshot     %s %d of job %s (%s)\n", in.Kind, in.Checkpoint, in.JobName, in.Job)
	fmt.Fprintf(w, "entry point  %s%s\n", in.Entrypoint, paramsText(in.Params))
	fmt.Fprintf(w, "completed    %s, triggered %s\n", in.Completed, in.Triggered)
	fmt.Fprintf(w, "size         %s of state (%s in flight, %s inside _metadata of %s)\n",
		bytesText(in.StateBytes), bytesText(in.InFlightBytes), bytesText(in.InlineBytes), bytesText(in.MetadataBytes))
	fmt.Fprintf(w, "code         %s  graph %.16s\n\n", in.CodeID, in.GraphHash)
	var t table
	t.row("OPERATOR", right("PARALLELISM"), right("MAX"), right("FINISHED"), right("KEYED"), right("LIST"), right("COORD"), "STATES")
	for _, o := range in.Operators {
		var states []string
		for _, s := range o.States {
			states = append(states, fmt.Sprintf("%s(%s → %s)", s.State, s.Key, s.Value))
		}
		t.row(o.Operator, right(fmt.Sprint(o.Parallelism)), right(fmt.Sprint(o.MaxParallelism)), right(fmt.Sprint(o.Finished)),
			right(bytesText(o.KeyedBytes)), right(fmt.Sprintf("%s (%d)", bytesText(o.ElementBytes), o.Elements)), right(bytesText(o.CoordinatorBytes)),
			strings.Join(states, ", "))
	}
	t.print(w)
	for _, f := range in.InFlight {
		fmt.Fprintf(w, "in flight  %s → %s (input %d)  %s of %d ends of channels\n", f.From, f.To, f.Input, bytesText(f.Bytes), f.Channels)
	}
	for _, k := range in.Hooks {
		fmt.Fprintf(w, "hook  %s  %s\n", k.Hook, bytesText(int64(k.Bytes)))
	}
	if len(in.Files) > 0 {
		fmt.Fprintln(w)
	}
	for i, f := range in.Files {
		if i == filesShown && !all {
			fmt.Fprintf(w, "and %d files more: --files lists them\n", len(in.Files)-i)
			break
		}
		fmt.Fprintf(w, "file  %s  %s in %d parts\n", f.File, bytesText(f.Bytes), f.Parts)
	}
}

// paramsText is a job's parameters in order.
func paramsText(params map[string]string) string {
	text := ""
	for _, key := range slices.Sorted(maps.Keys(params)) {
		text += "  " + key + "=" + params[key]
	}
	return text
}
