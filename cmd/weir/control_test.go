package main

import (
	"errors"
	"os/exec"
)

// exitCode is that of a command which ended with err.
func exitCode(err error) int {
	var e *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e.ExitCode()
	default:
		return -1
	}
}
