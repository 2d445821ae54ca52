// Package work has the cases about who does the work: claims, leases, workers, notifications,
// schedules, namespaces, keys and upkeep.
package work
