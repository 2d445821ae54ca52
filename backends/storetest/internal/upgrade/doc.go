// Package upgrade holds the work that a server leaves in its database, and checks how a newer
// schema continues it.
package upgrade
