package main

import "syscall"

// ownGroup keeps signals from the terminal away, and ends a daemon when the test is killed.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
