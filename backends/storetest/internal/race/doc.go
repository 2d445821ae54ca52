// Package race has the cases in which many call a store at once.
package race
