package stats

import (
	"math"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// cpuTime returns the CPU time of the process on all cores.
func cpuTime() time.Duration {
	var created, ended, kernel, user windows.Filetime
	if windows.GetProcessTimes(windows.CurrentProcess(), &created, &ended, &kernel, &user) != nil {
		return 0
	}
	return spanOf(kernel) + spanOf(user)
}

// spanOf returns the length of a span, which Windows counts in units of 100 ns.
func spanOf(f windows.Filetime) time.Duration {
	return time.Duration(int64(f.HighDateTime)<<32|int64(f.LowDateTime)) * 100
}

// memoryCounters is PROCESS_MEMORY_COUNTERS.
type memoryCounters struct {
	size, pageFaults                    uint32
	peakWorkingSet, workingSet          uintptr
	peakPaged, paged, peakNonPaged, non uintptr
	pagefile, peakPagefile              uintptr
}

var memoryInfo = windows.NewLazySystemDLL("kernel32.dll").NewProc("K32GetProcessMemoryInfo")

// residentBytes returns the working set of the process.
func residentBytes() int64 {
	var c memoryCounters
	c.size = uint32(unsafe.Sizeof(c))
	if memoryInfo.Find() != nil {
		return 0
	}
	if ok, _, _ := memoryInfo.Call(uintptr(windows.CurrentProcess()), uintptr(unsafe.Pointer(&c)),
		uintptr(c.size)); ok == 0 {
		return 0
	}
	return int64(c.workingSet)
}

// diskAvailable returns the space under the working directory that this user can still use.
func diskAvailable() int64 {
	dir, err := windows.UTF16PtrFromString(".")
	if err != nil {
		return 0
	}
	var available uint64
	if windows.GetDiskFreeSpaceEx(dir, &available, nil, nil) != nil {
		return 0
	}
	return int64(min(available, math.MaxInt64))
}
