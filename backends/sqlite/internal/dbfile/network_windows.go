package dbfile

import (
	"path/filepath"
	"strings"

	"golang.org/x/sys/windows"
)

// networkFilesystem returns the kind of disk of dir, an absolute path, if its locks or shared
// memory are not reliable, and empty otherwise. It recognizes a share by its name, \\server\share,
// and a mapped letter by its drive type.
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
