// Package runs holds the cases about runs: how they start, what they record and wait for, how they
// end and are found.
package runs
