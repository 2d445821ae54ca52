package e2e

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// programName is the file name of the real binary.
const programName = "kagzi.exe"

// addressTaken is the system's error for a used address.
var addressTaken = windows.WSAEADDRINUSE.Error()

// stoppable prepares a process that is not yet started for askToStop: a console event goes to a
// group of processes.
func stoppable(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}

// askToStop asks a process to end gracefully.
func askToStop(p *os.Process) error {
	return windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(p.Pid))
}

// wasKilled reports whether a process was killed: killed by Go it has exit code 1.
func wasKilled(p *os.ProcessState) bool { return p.ExitCode() == 1 }
