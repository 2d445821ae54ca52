package kagzitest

import (
	"maps"
	"slices"
	"strings"
)

// logUnused names the replaced steps that never ran: most likely their names are misspelt, and the
// steps' own code ran.
func (e *Env) logUnused() {
	e.t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(e.wanted)) {
		switch near := nearest(name, slices.Sorted(maps.Keys(e.ran))); {
		case e.ran[name]:
		case near != "":
			e.t.Logf("kagzitest: step %q is replaced but never ran; did you mean %q?", name, near)
		default:
			e.t.Logf("kagzitest: step %q is replaced but never ran", name)
		}
	}
}

// nearest returns the name that needs the fewest changes, the first of them in order, "" if there is
// none.
func nearest(wanted string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return slices.MinFunc(names, func(a, b string) int { return distance(wanted, a) - distance(wanted, b) })
}

// distance counts the bytes to insert, delete or replace to turn one name into another, without
// regard to case.
func distance(from, to string) int {
	from, to = strings.ToLower(from), strings.ToLower(to)
	row := make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(from) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(to) {
			change := diagonal
			if from[i] != to[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(to)]
}
