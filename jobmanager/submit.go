package jobmanager

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/group"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/jobmanager/ha"
	"github.com/weirflow/weir/jobmanager/jobmaster"
	"github.com/weirflow/weir/jobmanager/joboption"
	"github.com/weirflow/weir/jobmanager/scheduling"
	"github.com/weirflow/weir/operator"
	"github.com/weirflow/weir/rpc"
)

// Limits of a submission.
const (
	maxEntries   = 1000    // parameters, and options
	maxEntryText = 1 << 16 // bytes of a key or value
)

func fault(code rpc.Code, hint, format string, args ...any) error {
	return &rpc.Error{Code: code, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// prepared is a submission that was found good.
type prepared struct {
	body     jobmaster.Submission
	slots    int
	warnings []string
}

// submit records a job and starts it. What was begun goes on when the client goes
// away; it finds the job again by its request id.
func (t *term) submit(ctx context.Context, r rpc.SubmitRequest) (rpc.SubmitReply, error) {
	if r.RequestID == "" {
		r.RequestID = "auto-" + randomHex()
	}
	if err := checkRequest(r); err != nil {
		return rpc.SubmitReply{}, err
	}
	if known, ok := t.byRequest(ctx, r.RequestID); ok {
		return existing(known, r)
	}
	type answer struct {
		reply rpc.SubmitReply
		err   error
	}
	done := make(chan answer, 1)
	err := t.group.GoThen("submit", func(own context.Context) error {
		reply, err := t.admit(own, r)
		done <- answer{reply, err}
		return nil
	}, func(err error) {
		if err != nil {
			done <- answer{err: fault(rpc.CodeInternal, "", "submit: %v", err)}
		}
	})
	if err != nil {
		return rpc.SubmitReply{}, errTermOver()
	}
	select {
	case a := <-done:
		return a.reply, a.err
	case <-ctx.Done():
		return rpc.SubmitReply{}, context.Cause(ctx)
	case <-t.group.Context().Done():
		return rpc.SubmitReply{}, errTermOver()
	}
}

// existing answers a request that made a job before.
func existing(rec ha.JobRecord, r rpc.SubmitRequest) (rpc.SubmitReply, error) {
	if name := nameOf(r); rec.Name != name {
		return rpc.SubmitReply{}, fault(rpc.CodeAlreadyExists, "use a new request id",
			"request id %q was used for job %q, not %q", r.RequestID, rec.Name, name)
	}
	return rpc.SubmitReply{Job: rec.Job, Name: rec.Name, Existed: true}, nil
}

func nameOf(r rpc.SubmitRequest) string {
	if r.Name != "" {
		return r.Name
	}
	return r.Entrypoint
}

// checkRequest bounds what comes from outside.
func checkRequest(r rpc.SubmitRequest) error {
	bad := func(format string, args ...any) error {
		return fault(rpc.CodeInvalidArgument, "", format, args...)
	}
	switch {
	case r.Entrypoint == "":
		return bad("no entry point is named")
	case len(nameOf(r)) > ha.MaxNameLength || len(r.RequestID) > ha.MaxNameLength:
		return bad("job name or request id is longer than %d bytes", ha.MaxNameLength)
	case strings.ContainsFunc(nameOf(r)+r.RequestID, func(c rune) bool { return c < ' ' || c == '\uFFFD' }):
		return bad("job name or request id has characters that cannot be printed")
	case len(r.Params) > maxEntries || len(r.Options) > maxEntries:
		return bad("more than %d parameters or options", maxEntries)
	case r.Parallelism < 0 || r.Parallelism > weir.MaxMaxParallelism:
		return bad("parallelism %d is not between 1 and %d", r.Parallelism, weir.MaxMaxParallelism)
	}
	for _, m := range []map[string]string{r.Params, r.Options} {
		for k, v := range m {
			if len(k) > maxEntryText || len(v) > maxEntryText {
				return bad("a parameter or option is longer than %d bytes", maxEntryText)
			}
		}
	}
	return nil
}

// admit does what a submission needs, in order: check, write the body, record,
// start. Only the record makes the job exist.
func (t *term) admit(ctx context.Context, r rpc.SubmitRequest) (rpc.SubmitReply, error) {
	p, err := t.prepare(ctx, r)
	if err != nil {
		return rpc.SubmitReply{}, err
	}
	for _, w := range p.warnings {
		t.log.Warn("submission", zap.String("name", p.body.Name), zap.String("warning", w))
	}
	var id weir.JobID
	if _, err := io.ReadFull(t.cfg.Random, id[:]); err != nil {
		return rpc.SubmitReply{}, fault(rpc.CodeInternal, "", "draw a job id: %v", err)
	}
	dropClaim, err := t.claim(ctx, id, p.body.From)
	if err != nil {
		return rpc.SubmitReply{}, err
	}
	if err := jobmaster.WriteSubmission(ctx, t.cfg.Blobs, id, &p.body); err != nil {
		dropClaim(ctx)
		return rpc.SubmitReply{}, fault(rpc.CodeUnavailable, "is the checkpoint directory writable, and is there space?", "%v", err)
	}
	now := time.Now().UTC()
	record := ha.JobRecord{
		Job: id, Name: p.body.Name, RequestID: r.RequestID, EntryPoint: r.Entrypoint, CodeID: p.body.CodeID,
		GraphHash: p.body.Graph.Hash.String(), Body: jobmaster.BodyName(id), Submitted: now,
	}
	job, created, err := t.jobs.Submit(ctx, record, ha.JobStatus{State: rpc.JobInitializing.String(), Since: now})
	if err != nil || !created {
		t.dropBody(record, err, dropClaim)
	}
	if err != nil {
		return rpc.SubmitReply{}, t.submitError(err)
	}
	known := make(chan struct{})
	t.dispatcher.inbox.Post(adopt{job: job, done: known})
	select {
	case <-known:
	case <-ctx.Done():
		return rpc.SubmitReply{}, errTermOver()
	}
	if !created {
		return existing(job.Record, r)
	}
	return rpc.SubmitReply{Job: id, Name: record.Name}, nil
}

// dropBody deletes the body of a job that was not recorded. When it is not known
// whether it was, the body stays.
func (t *term) dropBody(record ha.JobRecord, err error, dropClaim func(context.Context)) {
	if errors.Is(err, ha.ErrDoubtful) || errors.Is(err, ha.ErrUnavailable) {
		return
	}
	t.dispatcher.pools.Delete(func(ctx context.Context) {
		dropClaim(ctx)
		if err := t.cfg.Blobs.Delete(ctx, record.Body); err != nil {
			t.log.Warn("body of a refused job not deleted", zap.String("body", record.Body), zap.Error(err))
		}
	})
}

func (t *term) submitError(err error) error {
	var taken *ha.NameTakenError
	switch {
	case errors.As(err, &taken):
		return fault(rpc.CodeAlreadyExists, "cancel it, or choose another name", "%v", taken)
	case errors.Is(err, ha.ErrRequestReused):
		return fault(rpc.CodeAlreadyExists, "use a new request id", "%v", err)
	case errors.Is(err, ha.ErrNotLeader):
		t.overtaken(err)
		return errTermOver()
	default:
		return fault(rpc.CodeUnavailable, "submit again with the same request id", "record the job: %v", err)
	}
}

// prepare checks a submission and makes its plan. It writes nothing.
func (t *term) prepare(ctx context.Context, r rpc.SubmitRequest) (*prepared, error) {
	leave, err := t.builders.enter(ctx, r.Entrypoint)
	if err != nil {
		return nil, err
	}
	defer leave()
	options := maps.Clone(t.cfg.Defaults)
	if options == nil {
		options = make(map[string]string)
	}
	maps.Copy(options, r.Options)
	if r.Parallelism != 0 {
		options["parallelism.default"] = strconv.Itoa(r.Parallelism)
	}
	settings, err := joboption.Parse(options)
	if err != nil {
		return nil, fault(rpc.CodeInvalidArgument, "docs/config.md lists all options", "%v", err)
	}
	if _, err := t.cfg.savepointTarget(settings.Checkpointing.SavepointDir); err != nil {
		return nil, fault(rpc.CodeInvalidArgument, "savepoints go below the JobManager's --savepoint-dir", "execution.checkpointing.savepoint-dir: %v", err)
	}
	recovery, err := wish(r, settings.Recovery)
	if err != nil {
		return nil, err
	}
	program, err := t.buildTwice(ctx, r)
	if err != nil {
		return nil, err
	}
	logical := program.Logical()
	physical := jobgraph.Options{
		Name: nameOf(r), Parallelism: settings.Parallelism, MaxParallelism: settings.MaxParallelism, DisableChaining: !settings.Chaining,
	}
	graph, err := jobgraph.Compile(logical, physical)
	if err != nil {
		return nil, fault(rpc.CodeInvalidArgument, "", "%v", err)
	}
	p := &prepared{body: jobmaster.Submission{
		Name: nameOf(r), Entrypoint: r.Entrypoint, Params: r.Params, RequestID: r.RequestID, CodeID: t.cfg.CodeID,
		Options: options, GraphText: logical.Text(),
	}}
	from, found, err := t.choose(ctx, nameOf(r), recovery)
	if err != nil {
		return nil, err
	}
	p.body.Why = from.why
	if found {
		if p.body.From, graph, err = t.origin(ctx, from, recovery, plan{logical, physical, graph}); err != nil {
			return nil, err
		}
	}
	p.body.Graph = graph
	p.slots, p.warnings = scheduling.SlotsNeeded(graph), append(unevenKeyGroups(graph), unread(logical)...)
	return p, nil
}

// buildTwice runs the builder twice and compares: a builder that is not
// deterministic would build another graph on each TaskManager.
func (t *term) buildTwice(ctx context.Context, r rpc.SubmitRequest) (operator.Program, error) {
	first, err := t.build(ctx, r)
	if err != nil {
		return nil, err
	}
	second, err := t.build(ctx, r)
	if err != nil {
		return nil, err
	}
	a, b := first.Logical(), second.Logical()
	if a.Digest() != b.Digest() {
		return nil, fault(rpc.CodeInvalidArgument, "a builder must depend on its parameters alone: no random names, no order of maps, no time",
			"the job %q is not deterministic: two builds differ: %s", r.Entrypoint, jobgraph.Diff(a.Text(), b.Text()))
	}
	return second, nil
}

// errBuildTimeout is the cause of giving a builder up.
var errBuildTimeout = errors.New("the builder did not return in time")

func (t *term) build(ctx context.Context, r rpc.SubmitRequest) (operator.Program, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, t.cfg.BuildTimeout, errBuildTimeout)
	defer cancel()
	var program operator.Program
	err := group.Catch(func() (err error) {
		program, err = t.cfg.Catalog.Build(ctx, r.Entrypoint, r.Params)
		return err
	})
	switch {
	case err == nil:
		return program, nil
	case errors.Is(err, operator.ErrUnknownEntrypoint):
		return nil, fault(rpc.CodeInvalidArgument, "", "%v", err)
	case errors.Is(err, errBuildTimeout) || errors.Is(err, context.DeadlineExceeded):
		return nil, fault(rpc.CodeDeadlineExceeded, "a builder only describes the job; it must not wait for anything",
			"build of job %q: not done within %s", r.Entrypoint, t.cfg.BuildTimeout)
	case ctx.Err() != nil:
		return nil, err
	default:
		return nil, fault(rpc.CodeInvalidArgument, "", "%v", err)
	}
}

func randomHex() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
