package platform

import "golang.org/x/sys/windows"

// FreeBytes returns how many bytes this user can still write on dir's file system.
func FreeBytes(dir string) (free uint64, err error) {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	err = windows.GetDiskFreeSpaceEx(path, &free, nil, nil)
	return free, err
}
