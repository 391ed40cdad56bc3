package jobmaster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
	"github.com/weirflow/weir/jobgraph"
	"github.com/weirflow/weir/snapshotmeta"
)

// Submission is the body of a job: everything that a leader needs to run it. It is
// kept as a blob and never changes.
type Submission struct {
	Name       string
	Entrypoint string
	Params     map[string]string
	RequestID  string
	CodeID     string
	Options    map[string]string // as they were given, with the cluster's defaults
	Graph      *jobgraph.JobGraph
	GraphText  string
	From       *Origin // what it was started from, or nil
	Why        string  `json:",omitempty"` // it was started from that, for people
}

// Origin is the snapshot that a job was started from.
type Origin struct {
	Path       string // as it was given
	Metadata   string // blob name of its _metadata
	Checkpoint weir.CheckpointID
	Kind       weir.SnapshotKind
	Bytes      int64
	Claim      bool `json:",omitempty"` // it is the job's own since
}

// claimed says whether this is the snapshot that the job has claimed.
func (o *Origin) claimed(metadata string) bool { return o != nil && o.Claim && o.Metadata == metadata }

// A body is one line, `weir-job 1 <crc32c of what follows, 8 hexadecimal digits>`,
// and a JSON document.
const (
	bodyMagic   = "weir-job"
	bodyVersion = 1
	maxBody     = 16 << 20
)

// Errors of reading a body.
var (
	// ErrBadBody: the blob is not a job's body, or damaged, or of a newer version.
	ErrBadBody = errors.New("bad job body")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// BodyName is the blob name of a job's body.
func BodyName(job weir.JobID) string { return path.Join(snapshotmeta.JobDir(job), "job.json") }

// EncodeSubmission writes a body.
func EncodeSubmission(s *Submission) ([]byte, error) {
	doc, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode job body: %w", err)
	}
	head := fmt.Sprintf("%s %d %08x\n", bodyMagic, bodyVersion, crc32.Checksum(doc, castagnoli))
	if len(head)+len(doc) > maxBody {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrBadBody, len(head)+len(doc), maxBody)
	}
	return append([]byte(head), doc...), nil
}

// DecodeSubmission reads a body. It believes nothing before the checksum.
func DecodeSubmission(body []byte) (*Submission, error) {
	head, doc, ok := bytes.Cut(body, []byte("\n"))
	var magic string
	var version int
	var sum uint32
	if n, _ := fmt.Sscanf(string(head[:min(len(head), 64)]), "%s %d %08x", &magic, &version, &sum); !ok || n != 3 || magic != bodyMagic {
		return nil, fmt.Errorf("%w: it does not begin as one", ErrBadBody)
	}
	if version != bodyVersion {
		return nil, fmt.Errorf("%w: version %d, this program reads %d", ErrBadBody, version, bodyVersion)
	}
	if got := crc32.Checksum(doc, castagnoli); got != sum {
		return nil, fmt.Errorf("%w: checksum %08x, want %08x", ErrBadBody, got, sum)
	}
	var s Submission
	if err := json.Unmarshal(doc, &s); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadBody, err)
	}
	if s.Graph == nil || len(s.Graph.Vertices) == 0 {
		return nil, fmt.Errorf("%w: it has no graph", ErrBadBody)
	}
	return &s, nil
}

// WriteSubmission makes the body durable under its name.
func WriteSubmission(ctx context.Context, blobs blobstore.Store, job weir.JobID, s *Submission) error {
	body, err := EncodeSubmission(s)
	if err != nil {
		return err
	}
	w, err := blobs.Create(ctx, BodyName(job))
	if err != nil {
		return fmt.Errorf("create job body: %w", err)
	}
	defer w.Abort()
	if _, err := w.Write(body); err != nil {
		return fmt.Errorf("write job body: %w", err)
	}
	if err := w.Commit(ctx); err != nil {
		return fmt.Errorf("commit job body: %w", err)
	}
	return nil
}

// ReadSubmission reads the body of this name.
func ReadSubmission(ctx context.Context, blobs blobstore.Store, name string) (*Submission, error) {
	r, err := blobs.Open(ctx, name, 0, -1)
	if err != nil {
		return nil, fmt.Errorf("open job body: %w", err)
	}
	defer r.Close()
	body, err := io.ReadAll(io.LimitReader(r, maxBody+1))
	if err != nil {
		return nil, fmt.Errorf("read job body: %w", err)
	}
	if len(body) > maxBody {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrBadBody, maxBody)
	}
	return DecodeSubmission(body)
}
