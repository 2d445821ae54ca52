package dbfile

import "golang.org/x/sys/unix"

// networkFilesystem returns the kind of file system of dir if its locks or shared memory are not
// reliable, and empty otherwise.
func networkFilesystem(dir string) string {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return ""
	}
	switch uint32(fs.Type) {
	case unix.NFS_SUPER_MAGIC:
		return "NFS"
	case unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC:
		return "SMB"
	case unix.V9FS_MAGIC:
		return "9p"
	case unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC:
		return "AFS"
	case unix.CEPH_SUPER_MAGIC:
		return "Ceph"
	case unix.CODA_SUPER_MAGIC:
		return "Coda"
	case unix.NCP_SUPER_MAGIC:
		return "NCP"
	case unix.FUSE_SUPER_MAGIC:
		return "FUSE"
	}
	return ""
}
