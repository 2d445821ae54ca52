package certs

import "os"

// checkSecret accepts every file: on Windows access is inherited from the directory.
func checkSecret(os.FileInfo) error { return nil }

// checkDir accepts every directory, for the same reason.
func checkDir(os.FileInfo) error { return nil }
