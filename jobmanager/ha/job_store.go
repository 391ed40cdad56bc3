package ha

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weirflow/weir"
)

// JobStore is the leader's record of its jobs. It keeps no copy: what it returns
// was read. Any goroutine may call it; two writers of one job's status or chain at
// a time is the caller's mistake, and ends in a [*ConflictError] or [ErrOvertaken].
type JobStore struct {
	reg   Registry
	guard weir.LeaderEpoch
}

// NewJobStore returns the store of the leader with this epoch.
func NewJobStore(reg Registry, epoch weir.LeaderEpoch) *JobStore {
	return &JobStore{reg: reg, guard: epoch}
}

// MaxNameLength bounds names of jobs and request ids, in bytes.
const MaxNameLength = 256

// Submit records a job under rec.Job, with its first status. If a job of this
// request id is recorded, live or not, it is returned instead and created is false.
// If another live job has the name the error is a [*NameTakenError].
func (s *JobStore) Submit(ctx context.Context, rec JobRecord, first JobStatus) (job Job, created bool, err error) {
	if err := checkRecord(rec, first); err != nil {
		return Job{}, false, err
	}
	first.Epoch = s.guard
	first.Failure = clipFailure(first.Failure)
	ref := encode(reference{Job: rec.Job.String()})
	ops := []Op{
		Create(requestKey(rec.RequestID), ref),
		Create(nameKey(rec.Name), ref),
		Create(recordKey(rec.Job), encode(rec)),
		Create(statusKey(rec.Job), encode(first)),
		Create(counterKey(rec.Job), encode(counter{})),
	}
	// A conflict may be about a job that ends or is removed before we have read it;
	// then we try again.
	for range submitTries {
		_, err = Settle(ctx, s.reg, s.guard, ops...)
		if err == nil {
			return Job{Record: rec, Status: first}, true, nil
		}
		var conflict *ConflictError
		if !errors.As(err, &conflict) {
			break
		}
		job, rerr := s.resubmitted(ctx, rec)
		if !errors.Is(rerr, errGone) {
			return job, false, rerr
		}
	}
	return Job{}, false, fmt.Errorf("submit job %q: %w", rec.Name, err)
}

// submitTries bounds how often a submit finds its keys taken and then gone. More than
// once in a row takes luck; for ever, a damaged registry.
const submitTries = 5

// errGone says that what a submit conflicted with is not there any more.
var errGone = errors.New("gone")

// resubmitted explains why a submit found its keys taken: it returns the job that
// the same request made before, or says who has the name.
func (s *JobStore) resubmitted(ctx context.Context, rec JobRecord) (Job, error) {
	holder, err := s.referenced(ctx, requestKey(rec.RequestID))
	if err == nil {
		if holder.Record.Name != rec.Name {
			return Job{}, fmt.Errorf("%w: request %q made job %q", ErrRequestReused, rec.RequestID, holder.Record.Name)
		}
		return holder, nil
	}
	if !errors.Is(err, errGone) {
		return Job{}, err
	}
	holder, err = s.referenced(ctx, nameKey(rec.Name))
	if err != nil {
		return Job{}, err
	}
	return Job{}, &NameTakenError{Holder: holder.Record}
}

// referenced returns the job that a name or request key refers to, or errGone.
func (s *JobStore) referenced(ctx context.Context, key string) (Job, error) {
	kv, err := s.reg.Get(ctx, key)
	if errors.Is(err, ErrNotFound) {
		return Job{}, errGone
	}
	if err != nil {
		return Job{}, err
	}
	id, err := decodeReference(kv)
	if err != nil {
		return Job{}, err
	}
	job, err := s.Job(ctx, id)
	if errors.Is(err, ErrNoJob) {
		return Job{}, errGone
	}
	return job, err
}

func checkRecord(rec JobRecord, first JobStatus) error {
	if rec.Job.IsZero() || rec.Name == "" || rec.RequestID == "" {
		return errors.New("a job record needs an id, a name and a request id")
	}
	if len(rec.Name) > MaxNameLength || len(rec.RequestID) > MaxNameLength {
		return fmt.Errorf("%w: job name or request id has more than %d bytes", ErrTooLarge, MaxNameLength)
	}
	if first.Terminal {
		return fmt.Errorf("submit %q: %w", rec.Name, ErrTerminal)
	}
	return nil
}

// Jobs returns all recorded jobs, live and ended, in order of submission. Those that
// cannot be decoded are left out and named in an [ErrCorrupt], beside the others.
func (s *JobStore) Jobs(ctx context.Context) ([]Job, error) {
	kvs, _, err := s.reg.List(ctx, jobsPrefix)
	if err != nil {
		return nil, fmt.Errorf("read jobs: %w", err)
	}
	var jobs []Job
	var corrupt []error
	for len(kvs) > 0 {
		n := 1
		id, err := parseJobKey(kvs[0].Key)
		if err == nil {
			for n < len(kvs) && strings.HasPrefix(kvs[n].Key, jobPrefix(id)) {
				n++
			}
			var job Job
			if job, err = decodeJob(id, kvs[:n]); err == nil {
				jobs = append(jobs, job)
			}
		}
		if err != nil {
			corrupt = append(corrupt, err)
		}
		kvs = kvs[n:]
	}
	slices.SortStableFunc(jobs, func(a, b Job) int {
		return cmp.Or(a.Record.Submitted.Compare(b.Record.Submitted), strings.Compare(a.Record.Job.String(), b.Record.Job.String()))
	})
	return jobs, errors.Join(corrupt...)
}

// parseJobKey returns the id of the job that a key is part of.
func parseJobKey(key string) (weir.JobID, error) {
	digits, _, ok := strings.Cut(strings.TrimPrefix(key, jobsPrefix), "/")
	id, err := weir.ParseJobID(digits)
	if !ok || err != nil {
		return weir.JobID{}, fmt.Errorf("%w: key %q is not a job's", ErrCorrupt, key)
	}
	return id, nil
}

// decodeJob finds record and status among a job's keys.
func decodeJob(id weir.JobID, kvs []KV) (job Job, err error) {
	found := 0
	for _, kv := range kvs {
		switch kv.Key {
		case recordKey(id):
			err = decode(kv, &job.Record)
		case statusKey(id):
			err = decode(kv, &job.Status)
		default:
			continue
		}
		if err != nil {
			return Job{}, err
		}
		found++
	}
	if found != 2 {
		return Job{}, fmt.Errorf("%w: job %s lacks its record or status", ErrCorrupt, id)
	}
	job.Record.Job = id
	return job, nil
}

// Job returns one job, or [ErrNoJob].
func (s *JobStore) Job(ctx context.Context, id weir.JobID) (Job, error) {
	record, err := s.jobKey(ctx, id, recordKey(id))
	if err != nil {
		return Job{}, err
	}
	status, err := s.jobKey(ctx, id, statusKey(id))
	if err != nil {
		return Job{}, err
	}
	return decodeJob(id, []KV{record, status})
}

// jobKey reads a key that every job has.
func (s *JobStore) jobKey(ctx context.Context, id weir.JobID, key string) (KV, error) {
	kv, err := s.reg.Get(ctx, key)
	if errors.Is(err, ErrNotFound) {
		return KV{}, fmt.Errorf("%w: %s", ErrNoJob, id)
	}
	if err != nil {
		return KV{}, fmt.Errorf("read job %s: %w", id, err)
	}
	return kv, nil
}

// SetStatus replaces the job's status. A terminal status frees the name; after it
// every other status is refused with [ErrTerminal]. Epoch is filled in.
func (s *JobStore) SetStatus(ctx context.Context, id weir.JobID, st JobStatus) error {
	old, err := s.jobKey(ctx, id, statusKey(id))
	if err != nil {
		return err
	}
	var was JobStatus
	if err := decode(old, &was); err != nil {
		return err
	}
	if was.Terminal {
		return fmt.Errorf("%w: job %s is %s", ErrTerminal, id, was.State)
	}
	st.Epoch = s.guard
	st.Failure = clipFailure(st.Failure)
	ops := []Op{Update(old, encode(st))}
	if st.Terminal {
		free, err := s.freeName(ctx, id)
		if err != nil {
			return err
		}
		ops = append(ops, free)
	}
	if _, err := Settle(ctx, s.reg, s.guard, ops...); err != nil {
		return fmt.Errorf("set job %s %s: %w", id, st.State, err)
	}
	return nil
}

// maxFailureText bounds message and stack of a recorded failure, in bytes, so that
// no failure is too large to be recorded.
const maxFailureText = 16 << 10

func clipFailure(f *weir.Failure) *weir.Failure {
	if f == nil {
		return nil
	}
	clipped := *f
	clipped.Message = clip(f.Message)
	clipped.Stack = clip(f.Stack)
	return &clipped
}

func clip(s string) string {
	if len(s) <= maxFailureText {
		return s
	}
	return strings.ToValidUTF8(s[:maxFailureText], "") + " (cut off)"
}

// freeName returns the op that frees a live job's name.
func (s *JobStore) freeName(ctx context.Context, id weir.JobID) (Op, error) {
	kv, err := s.jobKey(ctx, id, recordKey(id))
	if err != nil {
		return Op{}, err
	}
	var rec JobRecord
	if err := decode(kv, &rec); err != nil {
		return Op{}, err
	}
	name, err := s.jobKey(ctx, id, nameKey(rec.Name))
	if err != nil {
		return Op{}, err
	}
	holder, err := decodeReference(name)
	if err == nil && holder != id {
		err = fmt.Errorf("%w: live job %s has lost its name %q to job %s", ErrCorrupt, id, rec.Name, holder)
	}
	return Delete(name), err
}

// Remove forgets a job that has ended ([ErrLive] otherwise), with its chain. The
// files of its checkpoints are the caller's to delete or to leave, before. One that
// is not recorded is no error.
func (s *JobStore) Remove(ctx context.Context, id weir.JobID) error {
	kvs, _, err := s.reg.List(ctx, jobPrefix(id))
	if err != nil {
		return fmt.Errorf("remove job %s: %w", id, err)
	}
	if len(kvs) == 0 {
		return nil
	}
	job, err := decodeJob(id, kvs)
	if err != nil {
		return err
	}
	if !job.Status.Terminal {
		return fmt.Errorf("%w: job %s is %s", ErrLive, id, job.Status.State)
	}
	request, err := s.jobKey(ctx, id, requestKey(job.Record.RequestID))
	if err != nil {
		return err
	}
	// The links first, in as many transactions as they need; a job without a chain is
	// still a job.
	ops := []Op{Delete(request)}
	for _, kv := range kvs {
		if !strings.HasPrefix(kv.Key, chainPrefix(id)) {
			ops = append(ops, Delete(kv))
			continue
		}
		if _, err := Settle(ctx, s.reg, s.guard, Delete(kv)); err != nil {
			return fmt.Errorf("remove job %s: %w", id, err)
		}
	}
	if _, err := Settle(ctx, s.reg, s.guard, ops...); err != nil {
		return fmt.Errorf("remove job %s: %w", id, err)
	}
	return nil
}
