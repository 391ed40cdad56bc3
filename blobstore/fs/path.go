package fs

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ErrBadPath is wrapped by every refusal of [CheckPath].
var ErrBadPath = errors.New("bad path")

// maxPath bounds a path that comes from outside, in bytes.
const maxPath = 4096

// CheckPath is the one gate for paths that cross from a client to the JobManager: of a
// snapshot to start from, of a savepoint's target, of whatever comes later. It returns
// the path clean, or an [ErrBadPath] that says what is wrong with it.
//
// The path must be absolute, without "..", NUL and backslash, and lie in one of the
// roots, or be one. Symbolic links on the way, as far as it exists, may not lead out of
// the roots either; links of the roots themselves are the administrator's. Without
// roots every absolute path is allowed. What is made below the path later is guarded by
// [Store], which never follows a link out of its directory.
func CheckPath(p string, roots ...string) (string, error) {
	bad := func(format string, args ...any) (string, error) {
		shown := p[:min(len(p), 200)]
		return "", fmt.Errorf("%w %q: %s", ErrBadPath, shown, fmt.Sprintf(format, args...))
	}
	switch {
	case p == "":
		return bad("it is empty")
	case len(p) > maxPath:
		return bad("it has %d bytes, at most %d are allowed", len(p), maxPath)
	case strings.ContainsAny(p, "\x00\\"):
		return bad("it has a NUL or a backslash")
	case slices.Contains(strings.Split(p, "/"), ".."):
		return bad("it goes up")
	case !filepath.IsAbs(p):
		return bad("it is not absolute")
	}
	clean := filepath.Clean(p)
	if len(roots) == 0 {
		return clean, nil
	}
	if !withinAny(clean, roots) {
		return bad("it is not in %s", strings.Join(roots, ", "))
	}
	real, err := followed(clean)
	if err != nil {
		return bad("%v", err)
	}
	var allowed []string
	for _, root := range roots {
		r, err := followed(filepath.Clean(root))
		if err != nil {
			return bad("%v", err)
		}
		allowed = append(allowed, r)
	}
	if !withinAny(real, allowed) {
		return bad("a link leads out of %s", strings.Join(roots, ", "))
	}
	return clean, nil
}

// withinAny says whether a clean path is one of the directories or below one.
func withinAny(p string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool {
		dir = filepath.Clean(dir)
		return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
	})
}

// followed is the path with the symbolic links followed in the part of it that exists.
func followed(p string) (string, error) {
	rest := ""
	for dir := p; ; dir = filepath.Dir(dir) {
		real, err := filepath.EvalSymlinks(dir)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if !errors.Is(err, iofs.ErrNotExist) || dir == "/" {
			return "", err
		}
		if _, err := os.Lstat(dir); err == nil {
			return "", fmt.Errorf("%s is a link to nothing", dir)
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}
