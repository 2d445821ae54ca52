package certs

import "os"

// checkSecret has nothing to say: who may read a file is inherited from its directory.
func checkSecret(os.FileInfo) error { return nil }

// checkDir has nothing to say: likewise.
func checkDir(os.FileInfo) error { return nil }
