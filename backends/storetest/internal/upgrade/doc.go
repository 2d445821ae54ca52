// Package upgrade has the work that a server leaves in its database, and how a newer schema takes it up.
package upgrade
