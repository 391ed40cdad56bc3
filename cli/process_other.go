//go:build !linux

package cli

import "syscall"

// dieWithParent keeps an interrupt from the terminal for this process alone: it
// stops its children itself.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
