//go:build unix

package platform

import (
	"syscall"
	"testing"
)

func TestHangupsReceivesSIGHUP(t *testing.T) {
	heard, lost, stop := Hangups()
	defer stop()
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	<-heard
	if lost() {
		t.Error("the terminal is said to be lost, though nothing happened to it")
	}
}
