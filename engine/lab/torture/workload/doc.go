// Package workload is the load of torture's scenarios: clients that start runs and wait for them,
// worker processes with the code of these runs, and an onlooker that reads lists meanwhile. Each
// records what it was told, for package check.
package workload
