package long

import "os"

// ScratchDir returns a directory that goes away with the test, on a file system in memory where
// there is one with room. Tests that commit one small write after the other spend half of their
// time on waiting for a disk otherwise. When tests try everything it is on a disk, so that the same
// tests run there as well.
func ScratchDir(t interface {
	T
	TempDir() string
	Cleanup(func())
}) string {
	t.Helper()
	if Enabled() || memoryRoom() < leastRoom {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memoryDirectory, "kagzi-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Logf("%v", err)
		}
	})
	return dir
}

// leastRoom is bytes. A test's database takes one or two MiB, and few are there at the same time.
const leastRoom = 1 << 30
