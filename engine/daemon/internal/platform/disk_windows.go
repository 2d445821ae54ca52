package platform

import "golang.org/x/sys/windows"

// FreeBytes is how much the file system of dir can still take from us.
func FreeBytes(dir string) (free uint64, err error) {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	err = windows.GetDiskFreeSpaceEx(path, &free, nil, nil)
	return free, err
}
