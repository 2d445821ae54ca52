//go:build !linux

package long

const memoryDirectory = ""

// memoryRoom returns 0, because no in-memory file system is known here.
func memoryRoom() int64 { return 0 }
