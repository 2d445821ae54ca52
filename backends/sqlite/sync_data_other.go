//go:build !linux

package sqlite

// syncsData says that there is syncData.
const syncsData = false

func syncData(uintptr) int32 { panic("no way to sync only data is known here") }
