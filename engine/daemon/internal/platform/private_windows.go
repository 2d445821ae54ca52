package platform

import "os"

// CheckPrivate returns nil: a user's profile is private by inheritance.
func CheckPrivate(os.FileInfo) (shared bool, err error) { return false, nil }

// AnybodyWrites returns false: file modes say nothing on Windows.
func AnybodyWrites(os.FileInfo) bool { return false }

// Ours returns true: file modes say nothing on Windows.
func Ours(os.FileInfo) bool { return true }
