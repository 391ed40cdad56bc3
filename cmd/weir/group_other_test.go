//go:build !linux

package main

import "syscall"

// ownGroup keeps signals from the terminal away.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
