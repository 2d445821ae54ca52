//go:build unix

package child

import "syscall"

// ownGroup keeps the terminal's Ctrl-C from children: the parent stops them in order.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
