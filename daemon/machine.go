package daemon

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// slotsPerCPU bounds the slots of a TaskManager: far more subtasks than CPUs only wait for
// each other, and the JobManager would plan for them.
const slotsPerCPU = 256

// checkMachine refuses what this machine cannot hold.
func checkMachine(slots int, memory int64, cpus int, available int64) error {
	if most := slotsPerCPU * cpus; slots > most {
		return invalid(fmt.Sprintf("--slots is %d; with %d CPUs at most %d make sense", slots, cpus, most),
			"a slot runs one subtask of each operator: about one or two a CPU are usual")
	}
	if memory > available {
		return invalid(fmt.Sprintf("--memory is %d MiB; this machine, or what limits this process, has %d MiB", memory>>20, available>>20),
			"it is for network buffers only, and state needs room besides: 256mb are usual")
	}
	return nil
}

// cpus is how many this process may use.
func cpus() int { return runtime.GOMAXPROCS(0) }

// availableMemory is how many bytes this process could use at most: the machine's, or less
// if its control group has less. Where neither is known there is no bound.
func availableMemory() int64 {
	least := int64(math.MaxInt64)
	if b, err := os.ReadFile("/proc/meminfo"); err == nil {
		least = min(least, totalOf(string(b)))
	}
	if b, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil { // else it is "max"
			least = min(least, n)
		}
	}
	return least
}

// totalOf reads MemTotal of /proc/meminfo, which is in units of 1024 bytes.
func totalOf(meminfo string) int64 {
	for line := range strings.Lines(meminfo) {
		rest, ok := strings.CutPrefix(line, "MemTotal:")
		if !ok {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64); err == nil && n < math.MaxInt64>>10 {
			return n << 10
		}
	}
	return math.MaxInt64
}
