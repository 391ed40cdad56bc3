package file

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/flow"
)

// Parts of file names.
const (
	hiddenPrefix  = ".weir-"
	writingSuffix = ".writing"
	pendingSuffix = ".pending"
	finalPrefix   = "part-"
	partVersion   = 1
)

// partName is what the names of a part file have in common over its life:
// job-operator-subtask-attempt-number, and a suffix.
type partName string

func (n partName) writing() string { return hiddenPrefix + string(n) + writingSuffix }
func (n partName) pending() string { return hiddenPrefix + string(n) + pendingSuffix }
func (n partName) final() string   { return finalPrefix + string(n) }

// names makes the names of one attempt's files.
type names struct {
	stem    string // job and operator
	attempt string // subtask and a random number that no other attempt has
	suffix  string
	n       int
	current partName
}

func newNames(r *flow.Runtime, suffix string) names {
	var unique [8]byte
	_, _ = rand.Read(unique[:]) // never fails
	job, op := r.JobID(), weir.OperatorIDOf(r.Operator())
	return names{
		stem:    hex.EncodeToString(job[:6]) + "-" + hex.EncodeToString(op[:4]),
		attempt: strconv.Itoa(r.Subtask()) + "-" + hex.EncodeToString(unique[:]),
		suffix:  suffix,
	}
}

func (n *names) next() partName {
	n.current = partName(fmt.Sprintf("%s-%s-%d%s", n.stem, n.attempt, n.n, n.suffix))
	n.n++
	return n.current
}

// leftover says whether a file was being written by the same job and operator, and by
// which subtask.
func (n *names) leftover(file string) (subtask int, ok bool) {
	rest, ours := strings.CutPrefix(file, hiddenPrefix+n.stem+"-")
	rest, writing := strings.CutSuffix(rest, writingSuffix)
	number, _, found := strings.Cut(rest, "-")
	subtask, err := strconv.Atoi(number)
	return subtask, ours && writing && found && err == nil && subtask >= 0
}

// part is a file that is written and not known to be published.
type part struct {
	name partName
	size int64 // bytes
}

func (p *part) append(b []byte) []byte {
	b = append(b, partVersion)
	b = binary.AppendUvarint(b, uint64(len(p.name)))
	b = append(b, p.name...)
	return binary.AppendUvarint(b, uint64(p.size))
}

func parsePart(b []byte) (part, error) {
	d := decoder{b: b}
	if d.byte() != partVersion {
		d.bad = true
	}
	p := part{name: partName(d.text()), size: d.number(1<<63 - 1)}
	if d.bad || len(d.b) != 0 || p.name == "" || strings.ContainsAny(string(p.name), "/\x00") {
		return part{}, badState("a part file's %d bytes cannot be read", len(b))
	}
	return p, nil
}

// publish gives the file its final name. found is false if there is none under either
// name. It may be called again, and by several at a time:
//
//  1. The link either is made or was there; nothing is overwritten.
//  2. The pending name is removed only once the final one is there, so who comes second
//     finds at least one of them.
func (p *part) publish(dir string) (found bool, err error) {
	pending, final := filepath.Join(dir, p.name.pending()), filepath.Join(dir, p.name.final())
	info, err := os.Stat(pending)
	if errors.Is(err, fs.ErrNotExist) {
		_, err = os.Stat(final)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return err == nil, err
	}
	if err != nil {
		return false, err
	}
	if info.Size() != p.size {
		return true, permanent(weir.FaultOutside, fmt.Errorf("%w: %s has %d bytes, the snapshot says %d", ErrPartDamaged, pending, info.Size(), p.size))
	}
	if err := os.Link(pending, final); err != nil && !errors.Is(err, fs.ErrExist) {
		return p.publishAgain(dir, err)
	}
	if err := os.Remove(pending); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return true, err
	}
	return true, nil
}

// publishAgain is for links that cannot be made: because somebody else has published
// the file meanwhile, or because the file system has no links. Names are unique, so that
// a rename overwrites nothing but the same file.
func (p *part) publishAgain(dir string, cause error) (bool, error) {
	pending, final := filepath.Join(dir, p.name.pending()), filepath.Join(dir, p.name.final())
	if _, err := os.Stat(final); err == nil {
		return true, nil
	}
	if errors.Is(cause, fs.ErrNotExist) || errors.Is(cause, fs.ErrPermission) || errors.Is(cause, errors.ErrUnsupported) {
		if err := os.Rename(pending, final); err == nil {
			return true, nil
		}
	}
	return true, cause
}
