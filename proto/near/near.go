// Package near finds the names that mistyped words were meant to be.
package near

import "strings"

// Name returns the name that a mistyped word was most likely meant to be, ignoring case; empty if
// none is close. A short word is close to almost any name, so it has to match better.
func Name(word string, names []string) string {
	found, best := "", min(3, (len(word)+1)/2)
	for _, name := range names {
		if d := Distance(strings.ToLower(word), strings.ToLower(name)); d < best {
			found, best = name, d
		}
	}
	return found
}

// Distance returns the number of insertions, deletions, changes and swaps of neighbours that turn
// one word into the other. It finds the name that a mistyped word was meant to be. It compares
// bytes: names are ASCII.
func Distance(from, to string) int {
	older, old, row := make([]int, len(to)+1), make([]int, len(to)+1), make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(from); i++ {
		older, old, row = old, row, older
		row[0] = i
		for j := 1; j <= len(to); j++ {
			cost := 1
			if from[i-1] == to[j-1] {
				cost = 0
			}
			row[j] = min(old[j-1]+cost, old[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && from[i-1] == to[j-2] && from[i-2] == to[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
	}
	return row[len(to)]
}
