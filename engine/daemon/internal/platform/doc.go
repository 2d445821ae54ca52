// Package platform holds what differs between operating systems in a server process: timers,
// signals, who may write to a directory, free space on a disk, and who listens on a port.
package platform
