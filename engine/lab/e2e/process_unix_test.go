//go:build unix

package e2e

import (
	"os"
	"os/exec"
	"syscall"
)

// programName is what the real binary is called.
const programName = "kagzi"

// addressTaken is what the system says where somebody has an address.
var addressTaken = syscall.EADDRINUSE.Error()

// stoppable prepares a process that is yet to be started for askToStop.
func stoppable(*exec.Cmd) {}

// askToStop has a process end in good order.
func askToStop(p *os.Process) error { return p.Signal(syscall.SIGTERM) }

// wasKilled says how a process has ended.
func wasKilled(p *os.ProcessState) bool {
	status, ok := p.Sys().(syscall.WaitStatus)
	return ok && status.Signal() == syscall.SIGKILL
}
