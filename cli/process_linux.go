package cli

import "syscall"

// dieWithParent makes a child end when this process is killed, and keeps an
// interrupt from the terminal for this process alone: it stops its children itself.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
