//go:build unix

package child

import "syscall"

// ownGroup keeps the terminal's ctrl-C from children: the parent stops them, in its order.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
