// Package lab holds tests of whole systems and tools that test the tests. Nothing here ships; it
// may import everything.
//
//   - e2e: the server over gRPC on both databases, kills at failpoints, who may import whom.
//   - simulate: server, client and worker in virtual time, on the store in memory, with faults by seed.
//   - replay: the simulation on a runtime without randomness of its own.
//   - mutants: known mistakes, put into the code one at a time; each must be caught.
//   - pause: tests with goroutines held up where it matters who comes first.
//   - torture: real processes, disks and clusters; torture/check holds what was acknowledged against what is there.
//   - host, overlay: machines whose connections break; code that is changed for one build.
package lab
