package platform

import "os"

// Hangups returns nothing on Windows: restart to reload settings.
func Hangups() (heard <-chan os.Signal, lost func() bool, stop func()) {
	return nil, func() bool { return false }, func() {}
}
