package e2e

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// programName is what the real binary is called.
const programName = "kagzi.exe"

// addressTaken is what the system says where somebody has an address.
var addressTaken = windows.WSAEADDRINUSE.Error()

// stoppable prepares a process that is yet to be started for askToStop: what a console sends goes
// to a group of processes.
func stoppable(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}

// askToStop has a process end in good order.
func askToStop(p *os.Process) error {
	return windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(p.Pid))
}

// wasKilled says how a process has ended: killed by Go it has exit code 1.
func wasKilled(p *os.ProcessState) bool { return p.ExitCode() == 1 }
