// Package workload is what the scenarios of torture ask of the system under test: clients that
// start runs and wait for them, worker processes with the code of these runs, and somebody who
// looks at lists meanwhile. Each writes down what it was told, for package check.
package workload
