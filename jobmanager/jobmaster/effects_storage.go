package jobmaster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"path"
	"time"

	"go.uber.org/zap"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/internal/assert"
	"github.com/weirflow/weir/internal/planted"
	"github.com/weirflow/weir/internal/stoppoint"
	"github.com/weirflow/weir/jobmanager/checkpointing"
	"github.com/weirflow/weir/jobmanager/checkpointing/store"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/jobmanager/joboption"
	"github.com/weirflow/weir/snapshotmeta"
)

// store carries out what the checkpoint coordinator wants of storage.
func (l *loop) store(action checkpointing.Action) {
	storage := l.deps.Pools.storage
	switch a := action.(type) {
	case checkpointing.TakeID:
		l.call(storage, func(ctx context.Context) Event { return l.takeID(ctx, a) })
	case checkpointing.InitializeLocation:
		l.call(storage, func(ctx context.Context) Event { return l.initializeLocation(ctx, a) })
	case checkpointing.WriteMetadata:
		l.call(storage, func(ctx context.Context) Event { return l.writeMetadata(ctx, a) })
	case checkpointing.AddLink:
		l.call(storage, func(ctx context.Context) Event { return l.addLink(ctx, a) })
	case checkpointing.DiscardState:
		l.discardState(a)
	case checkpointing.DeleteCheckpoint:
		l.deleteCheckpoint(a)
	case checkpointing.DeleteShared:
		l.deleteShared(a)
	default:
		assert.That(false, "%T is not about storage", a)
	}
}

// overtakenBy says whether an error means that another leader acts for the job.
func overtakenBy(err error) bool {
	return errors.Is(err, ha.ErrNotLeader) || errors.Is(err, ha.ErrOvertaken)
}

func (l *loop) takeID(ctx context.Context, a checkpointing.TakeID) Event {
	id, err := store.NewCheckpointIDCounter(l.deps.Jobs, l.m.record.Job).Next(ctx)
	switch {
	case err == nil:
		return Checkpointing{checkpointing.IDTaken{Trigger: a.Trigger, Checkpoint: id}}
	case overtakenBy(err):
		return Checkpointing{checkpointing.OvertakenByOther{Message: err.Error()}}
	default:
		return Checkpointing{checkpointing.IDFailed{Trigger: a.Trigger, Reason: weir.IOException, Message: err.Error()}}
	}
}

func (l *loop) writeMetadata(ctx context.Context, a checkpointing.WriteMetadata) Event {
	failed := func(err error) Event {
		return Checkpointing{checkpointing.MetadataFailed{Checkpoint: a.Checkpoint, Message: err.Error()}}
	}
	s, err := l.snapshot(a)
	if err != nil {
		return failed(err)
	}
	blobs, name, shown, err := l.placeOf(a)
	if err != nil {
		return failed(err)
	}
	written, err := store.NewMetadataStore(blobs).WriteAs(ctx, name, s)
	for doubtful(ctx, err) {
		written, err = store.NewMetadataStore(blobs).WriteAs(ctx, name, s)
	}
	switch {
	case err == nil:
		return Checkpointing{checkpointing.MetadataWritten{Checkpoint: a.Checkpoint, Metadata: shown, Bytes: s.Bytes() + written.Bytes}}
	case ctx.Err() != nil:
		return nil // not known, and nobody waits: the leader stops
	case overtakenBy(err):
		return Checkpointing{checkpointing.OvertakenByOther{Message: err.Error()}}
	default:
		return failed(err)
	}
}

// doubtfulPause is the time between questions about an end that is not known.
const doubtfulPause = time.Second

// doubtful says whether the end of a call is not known and can be asked for again.
// It waits a little before it says so.
func doubtful(ctx context.Context, err error) bool {
	if !errors.Is(err, ha.ErrDoubtful) && !errors.Is(err, ha.ErrUnavailable) {
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(doubtfulPause):
		return true
	}
}

// snapshot is the content of a checkpoint's _metadata.
func (l *loop) snapshot(a checkpointing.WriteMetadata) (*snapshotmeta.Snapshot, error) {
	h := snapshotmeta.Header{
		Job: l.spec.Job, JobName: l.spec.Name, Checkpoint: a.Checkpoint, Kind: a.Kind, Epoch: l.spec.Epoch,
		Entrypoint: l.spec.Entrypoint, Params: l.spec.Params, CodeID: l.spec.CodeID,
		GraphHash: l.spec.Graph.Hash, GraphText: l.spec.GraphText,
		Triggered: a.Triggered.UTC().Truncate(time.Millisecond), Completed: a.Completed.UTC().Truncate(time.Millisecond),
	}
	for i := range l.spec.Graph.Vertices {
		v := &l.spec.Graph.Vertices[i]
		vertex := snapshotmeta.Vertex{Name: v.Name, Parallelism: v.Parallelism, MaxParallelism: v.MaxParallelism}
		for k, id := range v.IDs {
			vertex.Operators = append(vertex.Operators, snapshotmeta.OperatorRef{ID: id, Name: v.Operators[k]})
		}
		h.Vertices = append(h.Vertices, vertex)
	}
	for _, k := range a.Hooks {
		h.Hooks = append(h.Hooks, snapshotmeta.Hook{Name: k.Hook, State: k.State})
	}
	s := snapshotmeta.New(h)
	for _, t := range a.Tasks {
		if err := s.AddTask(t.Attempt.SubtaskID(), t.State); err != nil {
			return nil, err
		}
	}
	for _, id := range a.Finished {
		if err := s.AddTask(id.SubtaskID(), weir.TaskStateSnapshot{Finished: true}); err != nil {
			return nil, err
		}
	}
	for _, c := range a.Coordinators {
		if o := s.Operator(c.Operator); o != nil && len(c.State) > 0 {
			o.Coordinator = weir.StateHandle{Inline: c.State, Length: int64(len(c.State)), CRC: crc32.Checksum(c.State, castagnoli)}
		}
	}
	return s, nil
}

// addLink makes the checkpoint complete. An end that is not known is asked about
// until it is (DECISIONS 8).
func (l *loop) addLink(ctx context.Context, a checkpointing.AddLink) Event {
	c := store.Completed{Checkpoint: a.Checkpoint, Kind: a.Kind, Metadata: a.Metadata, Bytes: a.Bytes, At: a.At}
	permit, err := l.chain.Add(ctx, c)
	for !planted.Is(planted.LostAnswerIsRefusal) && doubtful(ctx, err) {
		permit, err = l.chain.Add(ctx, c)
	}
	switch {
	case err == nil:
		stoppoint.At(stoppoint.Linked)
		return Checkpointing{checkpointing.LinkAdded{Checkpoint: a.Checkpoint, Permit: permit}}
	case ctx.Err() != nil:
		return nil // not known, and nobody waits: the leader stops
	case overtakenBy(err):
		return Checkpointing{checkpointing.OvertakenByOther{Message: err.Error()}}
	default:
		return Checkpointing{checkpointing.LinkFailed{Checkpoint: a.Checkpoint, Message: err.Error()}}
	}
}

// readSnapshot reads what a run starts from. Handles of another job's snapshot are
// made absolute.
func (l *loop) readSnapshot(ctx context.Context, a LoadSnapshot) Event {
	var s *snapshotmeta.Snapshot
	var states map[weir.OperatorID][]byte
	location, name, foreign := snapshotmeta.CutForeign(a.Metadata)
	dir := path.Dir(path.Dir(name))
	blobs, err := l.blobsAt(location, foreign)
	if err == nil {
		s, err = store.NewMetadataStore(blobs).Read(ctx, name)
	}
	if err == nil {
		states, err = coordinatorStates(ctx, blobs, dir, s)
	}
	if err != nil {
		return SnapshotUnreadable{Run: a.Run, Failure: weir.Failure{
			Message: fmt.Sprintf("read snapshot %s: %v", a.Metadata, err), Fault: weir.FaultOutside, NoRetry: beyondRepair(err) && l.atHome(ctx), Subtask: -1,
		}}
	}
	l.figs.Restored(time.Now())
	l.log.Info("starts from a snapshot", zap.String("snapshot", a.Metadata), zap.Stringer("kind", s.Header.Kind),
		zap.Int64("checkpoint", int64(s.Header.Checkpoint)), zap.String("why", a.Why))
	DropInFlight(s, l.spec.Settings.Recovery)
	if foreign || dir != l.spec.Directory {
		for i := range s.Operators {
			for k := range s.Operators[i].Subtasks {
				t := &s.Operators[i].Subtasks[k]
				t.State = snapshotmeta.RebaseState(t.State, location, dir) // location "": the same store, wherever a host has mounted it
			}
		}
		s.Channels = snapshotmeta.RebaseChannels(s.Channels, location, dir)
	}
	return SnapshotLoaded{Run: a.Run, Snapshot: s, Coordinators: states}
}

// blobsAt is the checkpoint store, or another one.
func (l *loop) blobsAt(location string, foreign bool) (blobstore.Store, error) {
	switch {
	case !foreign:
		return l.deps.Blobs, nil
	case l.deps.OpenStore == nil:
		return nil, fmt.Errorf("%w: %s", snapshotmeta.ErrForeign, location)
	default:
		return l.deps.OpenStore(location)
	}
}

// atHome says whether the store is the one that has the job's body. In another one,
// for example a mount point that has lost its volume, what is missing is not gone.
func (l *loop) atHome(ctx context.Context) bool {
	_, err := l.deps.Blobs.Stat(ctx, l.m.record.Body)
	return !errors.Is(err, blobstore.ErrNotFound)
}

// beyondRepair says whether trying to read again cannot help.
func beyondRepair(err error) bool {
	for _, e := range []error{
		snapshotmeta.ErrNotSnapshot, snapshotmeta.ErrNewerVersion, snapshotmeta.ErrTruncated, snapshotmeta.ErrCorrupt,
		snapshotmeta.ErrNotFound, snapshotmeta.ErrForeign, blobstore.ErrNotFound,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// maxCoordinatorState bounds the state of one enumerator.
const maxCoordinatorState = 64 << 20

// coordinatorStates reads the states of the snapshot's enumerators.
func coordinatorStates(ctx context.Context, blobs blobstore.Store, dir string, s *snapshotmeta.Snapshot) (map[weir.OperatorID][]byte, error) {
	states := make(map[weir.OperatorID][]byte)
	for i := range s.Operators {
		o := &s.Operators[i]
		if o.Coordinator.IsZero() {
			continue
		}
		r, err := snapshotmeta.OpenHandle(ctx, blobs, dir, o.Coordinator)
		if err != nil {
			return nil, err
		}
		state, err := io.ReadAll(io.LimitReader(r, maxCoordinatorState+1))
		if cerr := r.Close(); err == nil {
			err = cerr
		}
		if err == nil && len(state) > maxCoordinatorState {
			err = fmt.Errorf("%w: enumerator state of %q has more than %d bytes", snapshotmeta.ErrCorrupt, o.Name, maxCoordinatorState)
		}
		if err != nil {
			return nil, err
		}
		states[o.ID] = state
	}
	return states, nil
}

// load reads the job's body and chain, in the background, until it has them or knows
// that it never will. A body that is not there may come back: it was written before
// the job was recorded, so the store is another one, or a volume is not mounted.
func (l *loop) load() {
	err := l.m.group.Go("job/load", func(ctx context.Context) error {
		for {
			x, err := l.tryLoad(ctx)
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case err == nil:
				l.m.inbox.Post(x)
				return nil
			case overtakenBy(err):
				l.deps.Overtaken(err)
				return nil
			case errors.Is(err, ErrBadBody) || errors.Is(err, joboption.ErrBad) || errors.Is(err, ha.ErrCorrupt):
				l.m.inbox.Post(unloadable{weir.Failure{Message: err.Error(), NoRetry: true, Subtask: -1}})
				return nil
			}
			l.log.Warn("job not loaded; will try again", zap.Error(err))
			l.m.inbox.Post(notLoaded{err.Error()})
			select {
			case <-ctx.Done():
			case <-time.After(doubtfulPause):
			}
		}
	})
	if err != nil {
		l.over = true
	}
}

func (l *loop) tryLoad(ctx context.Context) (loaded, error) {
	body, err := ReadSubmission(ctx, l.deps.Blobs, l.m.record.Body)
	if err != nil {
		return loaded{}, err
	}
	settings, err := joboption.Parse(body.Options)
	if err != nil {
		return loaded{}, err
	}
	if err := l.recordedInterval(ctx, &settings); err != nil {
		return loaded{}, err
	}
	if body.From != nil {
		if err := l.deps.Jobs.SkipCheckpointIDs(ctx, l.m.record.Job, body.From.Checkpoint); err != nil {
			return loaded{}, err
		}
	}
	chain, err := store.OpenChain(ctx, l.deps.Jobs, l.m.record.Job)
	if err != nil {
		return loaded{}, err
	}
	completed, err := l.completed(ctx, chain, body.From)
	if err != nil {
		return loaded{}, err
	}
	stop, asked, err := l.deps.Jobs.Stop(ctx, l.m.record.Job)
	if err != nil {
		return loaded{}, err
	}
	job := l.m.record.Job
	spec := &Spec{
		Job: job, Name: body.Name, Epoch: l.deps.Epoch, Entrypoint: body.Entrypoint, Params: body.Params,
		CodeID: body.CodeID, Graph: body.Graph, GraphText: body.GraphText, Settings: settings,
		Directory: snapshotmeta.JobDir(job), Start: body.Why,
		Rand: rand.New(rand.NewPCG(uint64(l.deps.Epoch), seedOf(job))),
	}
	start := Start{
		Completed: completed, Resumed: l.m.first.Epoch != l.deps.Epoch, Restarts: int(l.m.first.Restarts),
	}
	x := loaded{spec: spec, submission: body, chain: chain, start: start}
	if asked {
		x.stop = &stop
	}
	return x, nil
}

func seedOf(job weir.JobID) (seed uint64) {
	for _, b := range job[:8] {
		seed = seed<<8 | uint64(b)
	}
	return seed
}

// Result is what is kept of a job that has ended, beside its status.
type Result struct {
	Tasks          int
	LastCheckpoint weir.CheckpointID
	Detail         string
	Stop           *StopEnded `json:",omitempty"` // with which it ended
}

func encodeResult(r Report) []byte {
	result := Result{Tasks: len(r.Tasks), LastCheckpoint: r.Latest, Detail: r.Detail, Stop: r.Stopped}
	doc, err := json.Marshal(result)
	if err != nil {
		return nil
	}
	return doc
}

// DecodeResult reads what was kept of a job that has ended.
func DecodeResult(doc []byte) Result {
	var r Result
	if json.Unmarshal(doc, &r) != nil {
		return Result{}
	}
	return r
}
