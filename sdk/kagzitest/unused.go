package kagzitest

import (
	"maps"
	"slices"
	"strings"

	"github.com/kagzi/kagzi/proto/near"
)

// logUnused names the replaced steps that never ran: most likely their names are misspelt, and the
// steps' own code ran.
func (e *Env) logUnused() {
	e.t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(e.wanted)) {
		switch meant := nearest(name, slices.Sorted(maps.Keys(e.ran))); {
		case e.ran[name]:
		case meant != "":
			e.t.Logf("kagzitest: step %q is replaced but never ran; did you mean %q?", name, meant)
		default:
			e.t.Logf("kagzitest: step %q is replaced but never ran", name)
		}
	}
}

// nearest returns the name that needs the fewest changes, without regard to case: the first of them in
// order, "" if there is none.
func nearest(wanted string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	changes := func(name string) int { return near.Distance(strings.ToLower(wanted), strings.ToLower(name)) }
	return slices.MinFunc(names, func(a, b string) int { return changes(a) - changes(b) })
}
