package child

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup keeps the terminal's Ctrl-C from children: the parent stops them in order.
func ownGroup(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.CreationFlags = syscall.CREATE_NEW_PROCESS_GROUP
}

// shell passes the command as it is: cmd.exe has its own rules for quotes.
func shell(command string) *exec.Cmd {
	program := os.Getenv("ComSpec")
	if program == "" {
		program = "cmd.exe"
	}
	cmd := exec.Command(program, "/c", command)
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: `/s /c "` + command + `"`}
	return cmd
}

func terminate(*exec.Cmd) bool         { return false }
func kill(*exec.Cmd)                   {}
func terminated(*os.ProcessState) bool { return false }
