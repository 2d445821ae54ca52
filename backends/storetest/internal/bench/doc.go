// Package bench measures the operations of a store as their callers see them.
package bench
