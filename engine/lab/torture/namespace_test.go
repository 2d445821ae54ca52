//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMountsVanishWithTheirProcess runs itself again, as a process that has its mounts to itself, mounts something and is killed.
func TestMountsVanishWithTheirProcess(t *testing.T) {
	const variable = "TORTURE_TEST_MOUNT"
	if dir := os.Getenv(variable); dir != "" {
		fmt.Println("pid", os.Getpid())
		if err := ownMounts(); err != nil {
			t.Fatal(err)
		}
		if os.Getenv(mountsVariable) == "" {
			fmt.Println("not here")
			return
		}
		fmt.Println("mounted:", unix.Mount("tmpfs", dir, "tmpfs", 0, ""))
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestMountsVanishWithTheirProcess$")
	cmd.Env = append(os.Environ(), variable+"="+dir)
	out, _ := cmd.CombinedOutput() // it is killed
	if strings.Contains(string(out), "not here") || strings.Contains(string(out), "mounted: operation not permitted") {
		t.Skip("mounts take root")
	}
	if pid := fmt.Sprintln("pid", cmd.Process.Pid); !strings.Contains(string(out), pid+pid+"mounted: <nil>\n") {
		t.Errorf("it said %q, want the same pid twice, and that it has mounted something", out)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil || strings.Contains(string(mounts), dir) {
		t.Errorf("mounts: %v, want none of it left:\n%s", err, mounts)
		_ = unix.Unmount(dir, 0)
	}
}
