//go:build unix

package e2e

import (
	"os"
	"os/exec"
	"syscall"
)

// programName is the file name of the real binary.
const programName = "kagzi"

// addressTaken is the system's error for a used address.
var addressTaken = syscall.EADDRINUSE.Error()

// stoppable prepares a process that is not yet started for askToStop.
func stoppable(*exec.Cmd) {}

// askToStop asks a process to end gracefully.
func askToStop(p *os.Process) error { return p.Signal(syscall.SIGTERM) }

// wasKilled reports whether a process was killed.
func wasKilled(p *os.ProcessState) bool {
	status, ok := p.Sys().(syscall.WaitStatus)
	return ok && status.Signal() == syscall.SIGKILL
}
