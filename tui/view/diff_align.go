package view

// pairing is a line on the left and the one beside it; -1 where there is none.
type pairing struct{ left, right int }

// alignMost bounds the work of comparing: the product of the lengths of the parts that differ.
const alignMost = 4 << 20

// align puts equal lines of two lists beside each other, as many as can be without changing their order. Lines that differ stand beside each
// other as far as there are some on both sides. Where that would be too much work, lines are taken in turn.
func align(left, right []string) []pairing {
	var pairs []pairing
	head := 0
	for head < len(left) && head < len(right) && left[head] == right[head] {
		pairs = append(pairs, pairing{head, head})
		head++
	}
	tail := 0
	for tail < len(left)-head && tail < len(right)-head && left[len(left)-1-tail] == right[len(right)-1-tail] {
		tail++
	}
	pairs = append(pairs, alignMiddle(left[head:len(left)-tail], right[head:len(right)-tail], head)...)
	for i := tail; i > 0; i-- {
		pairs = append(pairs, pairing{len(left) - i, len(right) - i})
	}
	return pairs
}

// alignMiddle aligns what differs at both ends; offset is how many lines are before it.
func alignMiddle(left, right []string, offset int) []pairing {
	if len(left) == 0 || len(right) == 0 || len(left) > alignMost/len(right) {
		return sideways(0, len(left), 0, len(right), offset)
	}
	common := commonAfter(left, right)
	var pairs []pairing
	i, j := 0, 0       // where the walk is
	from, with := 0, 0 // where what differs began
	for i < len(left) && j < len(right) {
		switch {
		case left[i] == right[j]:
			pairs = append(append(pairs, sideways(from, i, with, j, offset)...), pairing{offset + i, offset + j})
			i, j = i+1, j+1
			from, with = i, j
		case common[i+1][j] >= common[i][j+1]:
			i++
		default:
			j++
		}
	}
	return append(pairs, sideways(from, len(left), with, len(right), offset)...)
}

// commonAfter is how many lines can stand beside equal ones from each pair of places on.
func commonAfter(left, right []string) [][]int32 {
	common := make([][]int32, len(left)+1)
	cells := make([]int32, (len(left)+1)*(len(right)+1))
	for i := range common {
		common[i] = cells[i*(len(right)+1) : (i+1)*(len(right)+1)]
	}
	for i := len(left) - 1; i >= 0; i-- {
		for j := len(right) - 1; j >= 0; j-- {
			if left[i] == right[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	return common
}

// sideways puts lines from two places beside each other in turn, as long as there are some on both sides.
func sideways(i, left, j, right, offset int) []pairing {
	var pairs []pairing
	for i < left || j < right {
		pair := pairing{-1, -1}
		if i < left {
			pair.left = offset + i
			i++
		}
		if j < right {
			pair.right = offset + j
			j++
		}
		pairs = append(pairs, pair)
	}
	return pairs
}
