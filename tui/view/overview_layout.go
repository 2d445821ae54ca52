package view

// The blocks of the overview.
const (
	tilesBlock    = "tiles"
	warningsBlock = "warnings"
	activityBlock = "activity"
	queuesBlock   = "queues"
	failuresBlock = "failures"
	firesBlock    = "fires"
)

// blockOrder is the order of those that list something.
var blockOrder = []string{tilesBlock, warningsBlock, queuesBlock, failuresBlock, firesBlock}

// placed is where a block is on the page.
type placed struct {
	id         string
	x, y, w, h int
	left, top  int // on the screen, as of the last frame
}

// What blocks need.
const (
	boxedTile  = 4 // lines of a tile with its frame
	shortTiles = 2 // lines of all tiles without frames
	charts     = 5
	mostListed = 8 // items of a block, but for warnings
)

// arrange places the blocks on a page of w by h cells: what is wrong first, the rest as there is room. count is how many items a block has.
func arrange(w, h int, count func(id string) int) []placed {
	if w < 70 || h < 17 {
		return inStack(w, h, count)
	}
	return inColumns(w, h, count)
}

// inStack puts the blocks below each other.
func inStack(w, h int, count func(id string) int) []placed {
	list := []placed{{id: tilesBlock, w: w, h: shortTiles}}
	y := shortTiles
	add := func(id string, want, least int) {
		if want = min(want, h-y); want >= least {
			list = append(list, placed{id: id, y: y, w: w, h: want})
			y += want
		}
	}
	add(warningsBlock, 1+min(count(warningsBlock), max(h/4, 1)), 1)
	add(failuresBlock, 1+min(max(count(failuresBlock), 1), mostListed), 2)
	add(queuesBlock, 1+min(max(count(queuesBlock), 1), mostListed), 2)
	add(activityBlock, 1+charts, 1+charts)
	add(firesBlock, 1+min(max(count(firesBlock), 1), mostListed), 2)
	return list
}

// inColumns puts the charts beside the queues, and the failures beside what comes next.
func inColumns(w, h int, count func(id string) int) []placed {
	gap := 0
	if h >= 24 {
		gap = 1
	}
	warnings := 1 + min(count(warningsBlock), max(h/6, 3))
	y := boxedTile
	list := []placed{
		{id: tilesBlock, w: w, h: boxedTile},
		{id: warningsBlock, y: y, w: w, h: warnings},
	}
	y += warnings + gap
	low := 1 + min(max(count(failuresBlock), count(firesBlock), 1), mostListed)
	high := 1 + max(charts, min(count(queuesBlock), mostListed))
	low = min(low, max(h-y-gap-(1+charts), 2))
	tall := min(max((h-y-gap-low-1)/charts, 1), 4) // rows of a chart
	high = min(max(high, 1+charts*tall), h-y-gap-low)
	left := w * 57 / 100
	right := w - left - 2
	return append(list,
		placed{id: activityBlock, y: y, w: left, h: high},
		placed{id: queuesBlock, x: left + 2, y: y, w: right, h: high},
		placed{id: failuresBlock, y: y + high + gap, w: left, h: low},
		placed{id: firesBlock, x: left + 2, y: y + high + gap, w: right, h: low},
	)
}
