package long

import "os"

// ScratchDir returns a directory that is removed after the test. It is on an in-memory file system
// if one has enough space, because tests with many small commits otherwise spend half of their time
// waiting for the disk. If tests try everything it is on a disk.
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

// leastRoom is in bytes. A test's database takes one or two MiB, and few exist at the same time.
const leastRoom = 1 << 30
