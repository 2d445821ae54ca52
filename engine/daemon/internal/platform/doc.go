// Package platform holds what differs between operating systems in a server process: timers,
// signals, directory permissions, free disk space, and the program behind a port.
package platform
