package dbfile

import (
	"path/filepath"
	"strings"

	"golang.org/x/sys/windows"
)

// networkFilesystem names the kind of disk that dir, an absolute path, lies on if its locks or its
// shared memory cannot be relied on, and is empty otherwise. A share is known by its name,
// \\server\share, and a letter that stands for one by its drive.
func networkFilesystem(dir string) string {
	volume := filepath.VolumeName(dir)
	device := strings.HasPrefix(volume, `\\?\`) || strings.HasPrefix(volume, `\\.\`)
	if strings.HasPrefix(volume, `\\`) && (!device || strings.HasPrefix(strings.ToUpper(dir[len(`\\?\`):]), `UNC\`)) {
		return "a network share"
	}
	root, err := windows.UTF16PtrFromString(volume + `\`)
	if err == nil && windows.GetDriveType(root) == windows.DRIVE_REMOTE {
		return "a network drive"
	}
	return ""
}
