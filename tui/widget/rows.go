package widget

// MovesBy is how many rows a key moves the cursor in a list of n rows of which height are on the screen: below zero upwards, and n or more for the
// ends. ok is false for a key that moves nothing.
func MovesBy(key string, n, height int) (rows int, ok bool) {
	page := max(height-1, 1)
	switch key {
	case "j", "down":
		return 1, true
	case "k", "up":
		return -1, true
	case "g", "home":
		return -n, true
	case "G", "end":
		return n, true
	case "pgdn":
		return page, true
	case "pgup":
		return -page, true
	case "ctrl-d":
		return max(page/2, 1), true
	case "ctrl-u":
		return -max(page/2, 1), true
	}
	return 0, false
}

// inView is the cursor on the nearest of n rows there is, and the first row of the screen, moved no further than it takes to show the cursor.
func inView(cursor, offset, n, height int) (at, first int) {
	at, height = max(min(cursor, n-1), 0), max(height, 1)
	first = min(max(offset, at-height+1), at)
	return at, max(min(first, n-height), 0)
}
