package render

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
