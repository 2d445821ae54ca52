// Package race holds the cases in which many goroutines call a store at once.
package race
