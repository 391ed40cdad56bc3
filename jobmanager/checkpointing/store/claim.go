package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/blobstore"
)

// ClaimFile is the blob, in a snapshot's directory, that says who has claimed it
// (DECISIONS 10). A job that is started from a snapshot in claim mode owns it from then
// on and deletes it when it is subsumed, so nobody else may.
const ClaimFile = "_claim"

// Claim says who owns a snapshot that another job has taken.
type Claim struct {
	Cluster string    `json:"cluster"` // id of the cluster
	Job     string    `json:"job"`     // id of its job
	At      time.Time `json:"at"`
}

// same says whether a claim is by the same job.
func (c Claim) same(o Claim) bool { return c.Cluster == o.Cluster && c.Job == o.Job }

// ClaimedError says that a snapshot is somebody else's.
type ClaimedError struct{ By Claim }

func (e *ClaimedError) Error() string {
	return fmt.Sprintf("claimed by job %s of cluster %q on %s", e.By.Job, e.By.Cluster, e.By.At.UTC().Format(time.RFC3339))
}

// A claim is one line, `weir-claim 1 <crc32c of what follows, 8 hexadecimal digits>`, and
// a JSON document.
const (
	claimMagic   = "weir-claim"
	claimVersion = 1
	maxClaim     = 4096
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func encodeClaim(c Claim) ([]byte, error) {
	doc, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	head := fmt.Sprintf("%s %d %08x\n", claimMagic, claimVersion, crc32.Checksum(doc, castagnoli))
	return append([]byte(head), doc...), nil
}

// DecodeClaim reads a claim's file. It believes nothing before the checksum.
func DecodeClaim(content []byte) (Claim, error) {
	head, doc, ok := bytes.Cut(content, []byte("\n"))
	var magic string
	var version int
	var sum uint32
	if n, _ := fmt.Sscanf(string(head[:min(len(head), 64)]), "%s %d %08x", &magic, &version, &sum); !ok || n != 3 || magic != claimMagic {
		return Claim{}, fmt.Errorf("%w: it does not begin as a claim", ErrBadClaim)
	}
	if version != claimVersion {
		return Claim{}, fmt.Errorf("%w: version %d, this program reads %d", ErrBadClaim, version, claimVersion)
	}
	if got := crc32.Checksum(doc, castagnoli); got != sum {
		return Claim{}, fmt.Errorf("%w: checksum %08x, want %08x", ErrBadClaim, got, sum)
	}
	var c Claim
	if err := json.Unmarshal(doc, &c); err != nil {
		return Claim{}, fmt.Errorf("%w: %w", ErrBadClaim, err)
	}
	if _, err := weir.ParseJobID(c.Job); err != nil || c.Cluster == "" {
		return Claim{}, fmt.Errorf("%w: it names no job or no cluster", ErrBadClaim)
	}
	return c, nil
}

// ReadClaim reads who has claimed the snapshot in a directory of a store; ok is false if
// nobody has.
func ReadClaim(ctx context.Context, store blobstore.Store, dir string) (c Claim, ok bool, err error) {
	r, err := store.Open(ctx, path.Join(dir, ClaimFile), 0, -1)
	if errors.Is(err, blobstore.ErrNotFound) {
		return Claim{}, false, nil
	}
	if err != nil {
		return Claim{}, false, fmt.Errorf("read claim: %w", err)
	}
	defer r.Close()
	content, err := io.ReadAll(io.LimitReader(r, maxClaim+1))
	if err != nil {
		return Claim{}, false, fmt.Errorf("read claim: %w", err)
	}
	if len(content) > maxClaim {
		return Claim{}, false, fmt.Errorf("read claim: %w: more than %d bytes", ErrBadClaim, maxClaim)
	}
	if c, err = DecodeClaim(content); err != nil {
		return Claim{}, false, fmt.Errorf("read claim: %w", err)
	}
	return c, true, nil
}

// TakeClaim claims the snapshot in a directory of a store by an exclusive create. A
// claim that is there already is ours (then all is well), another cluster's (a
// [ClaimedError], always), or that of another job of our cluster: over says whether that
// job has ended or never existed, so that its claim may be replaced.
//
// Only the leader calls it, one call at a time: two of our jobs that replace a dead
// one's claim at once could each delete the other's. A leader that was overtaken may do
// so all the same; then its job is not recorded, and the next claimer replaces the claim.
// Whose the snapshot is within the cluster is what the chain in the registry says; the
// file keeps other clusters away, and it is missing only while it is replaced, when
// whoever creates it first wins.
func TakeClaim(ctx context.Context, store blobstore.Store, dir string, c Claim, over func(job weir.JobID) (bool, error)) error {
	content, err := encodeClaim(c)
	if err != nil {
		return err
	}
	name := path.Join(dir, ClaimFile)
	const tries = 2 // to create, and again in place of a dead job's
	for range tries {
		cerr := create(ctx, store, name, content)
		if cerr == nil {
			return nil
		}
		there, ok, err := ReadClaim(ctx, store, dir)
		switch {
		case err != nil:
			return errors.Join(err, cerr)
		case !ok:
			return fmt.Errorf("claim the snapshot: %w", cerr)
		case there.same(c):
			return nil
		case there.Cluster != c.Cluster:
			return &ClaimedError{By: there}
		}
		job, err := weir.ParseJobID(there.Job)
		if err != nil {
			return err
		}
		if gone, err := over(job); err != nil || !gone {
			return errors.Join(err, &ClaimedError{By: there})
		}
		if err := store.Delete(ctx, name); err != nil && !errors.Is(err, blobstore.ErrNotFound) {
			return fmt.Errorf("replace the claim of job %s, which is over: %w", there.Job, err)
		}
	}
	return fmt.Errorf("claim the snapshot: %w", blobstore.ErrExists)
}

// DropClaim gives a claim back whose job was not recorded. Somebody else's stays.
func DropClaim(ctx context.Context, store blobstore.Store, dir string, c Claim) error {
	there, ok, err := ReadClaim(ctx, store, dir)
	if err != nil || !ok || !there.same(c) {
		return err
	}
	if err := store.Delete(ctx, path.Join(dir, ClaimFile)); err != nil && !errors.Is(err, blobstore.ErrNotFound) {
		return fmt.Errorf("drop claim: %w", err)
	}
	return nil
}

// create writes a blob whole.
func create(ctx context.Context, store blobstore.Store, name string, content []byte) error {
	w, err := store.Create(ctx, name)
	if err != nil {
		return err
	}
	defer w.Abort()
	if _, err := w.Write(content); err != nil {
		return err
	}
	return w.Commit(ctx)
}
