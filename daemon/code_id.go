package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
)

// codeID is stamped by the Makefile: the content id of the module. It is equal on
// every architecture and in all binaries of one build (DECISIONS 2).
var codeID string

// CodeID identifies the code of this binary: the stamp, else the hash of the
// executable.
func CodeID() (string, error) {
	if codeID != "" {
		return codeID, nil
	}
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return "exe-" + hex.EncodeToString(h.Sum(nil)[:16]), nil
}
