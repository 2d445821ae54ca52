package wire

// Nearest returns the candidate that differs least from a text, for "did you mean". It returns ""
// if even that one differs in more than a third of the text. Of several, the first counts.
func Nearest(text string, candidates []string) string {
	nearest, least := "", max(len(text)/3, 1)+1
	for _, c := range candidates {
		if d := distance(text, c); d < least {
			nearest, least = c, d
		}
	}
	return nearest
}

// distance returns the edit distance of two texts in bytes (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
