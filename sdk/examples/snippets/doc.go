// Package snippets holds the pieces of code that the guide quotes and that none of the example
// programs shows.
package snippets
