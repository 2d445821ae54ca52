// Package work holds the cases about claims, leases, workers, notifications, schedules, namespaces,
// keys and upkeep.
package work
