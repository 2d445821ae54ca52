//go:build !linux

package long

const memoryDirectory = ""

// memoryRoom is 0: no file system in memory is known here.
func memoryRoom() int64 { return 0 }
