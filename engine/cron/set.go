package cron

import "math/bits"

// set is a set of numbers from 0 to 191, enough for every field. Years are stored as years since
// firstYear.
type set [3]uint64

func (s *set) add(v int) { s[v/64] |= 1 << (v % 64) }

func (s *set) has(v int) bool {
	return v >= 0 && v < 64*len(s) && s[v/64]&(1<<(v%64)) != 0
}

func (s *set) count() int {
	n := 0
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// members returns the set's numbers in ascending order.
func (s *set) members() []int {
	var all []int
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			all = append(all, 64*i+bits.TrailingZeros64(word))
		}
	}
	return all
}
