package ha

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"

	"github.com/weirflow/weir"
)

// Keys, relative to the cluster's part of the registry (docs/formats.md):
//
//	leader                      who leads; an election's
//	names/<name>                id of the live job that has the name
//	requests/<request id>       id of the job that the request made
//	jobs/<id>/record            JobRecord
//	jobs/<id>/status            JobStatus
//	jobs/<id>/checkpoint-id     the last checkpoint id that was taken
//	jobs/<id>/stop              Stop: the newest wish to stop with a savepoint
//	jobs/<id>/interval          of periodic checkpoints, if it was changed while the job ran
//	jobs/<id>/chain/<number>    Link; 16 hexadecimal digits, so that keys sort as numbers
//
// Values are JSON objects; names and request ids are escaped as in a URL's path.
const jobsPrefix = "jobs/"

func nameKey(name string) string       { return "names/" + url.PathEscape(name) }
func requestKey(request string) string { return "requests/" + url.PathEscape(request) }
func jobPrefix(id weir.JobID) string   { return jobsPrefix + id.String() + "/" }
func recordKey(id weir.JobID) string   { return jobPrefix(id) + "record" }
func statusKey(id weir.JobID) string   { return jobPrefix(id) + "status" }
func counterKey(id weir.JobID) string  { return jobPrefix(id) + "checkpoint-id" }
func stopKey(id weir.JobID) string     { return jobPrefix(id) + "stop" }
func intervalKey(id weir.JobID) string { return jobPrefix(id) + "interval" }
func chainPrefix(id weir.JobID) string { return jobPrefix(id) + "chain/" }

func linkKey(id weir.JobID, number uint64) string {
	return fmt.Sprintf("%s%016x", chainPrefix(id), number)
}

// parseLinkKey returns the number in what follows the chain's prefix.
func parseLinkKey(rest string) (uint64, error) {
	if len(rest) != 16 {
		return 0, fmt.Errorf("%w: link key %q", ErrCorrupt, rest)
	}
	n, err := strconv.ParseUint(rest, 16, 64)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%w: link key %q", ErrCorrupt, rest)
	}
	return n, nil
}

// reference is the value of a name or request key.
type reference struct {
	Job string `json:"job"`
}

// counter is the value of a checkpoint-id key.
type counter struct {
	Last weir.CheckpointID `json:"last"`
}

// encode writes a value. The types are ours and have no part that JSON refuses.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return b
}

// decode reads a value strictly: another program's, or a later version's, is refused.
func decode(kv KV, v any) error {
	d := json.NewDecoder(bytes.NewReader(kv.Value))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("%w: key %q: %w", ErrCorrupt, kv.Key, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("%w: key %q: bytes after the value", ErrCorrupt, kv.Key)
	}
	return nil
}

// decodeReference reads the job id of a name or request key.
func decodeReference(kv KV) (weir.JobID, error) {
	var ref reference
	if err := decode(kv, &ref); err != nil {
		return weir.JobID{}, err
	}
	id, err := weir.ParseJobID(ref.Job)
	if err != nil {
		return weir.JobID{}, fmt.Errorf("%w: key %q: %w", ErrCorrupt, kv.Key, err)
	}
	return id, nil
}
