package sqlite3

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

func TestAPageOfZerosHoldsInNoPlace(t *testing.T) {
	for size := leastPage; size <= maxPage; size *= 2 {
		// The only page number under which a page of zeros would pass its check must be out of range.
		inverse := uint64(1)
		for range 6 {
			inverse *= 2 - 0x9e3779b97f4a7c15*inverse
		}
		if number := checksum(make([]byte, size), 0) * inverse; number>>32 == 0 {
			t.Errorf("an empty page of %d bytes holds in the place of page %d", size, number)
		}
	}
}

func TestAChecksumLeavesTheSumOfTheLogAsItIs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		page := make([]byte, 4096)
		for i := range page {
			page[i] = byte(random.Uint32())
		}
		from := logSums{random.Uint32(), random.Uint32()}
		before := from.of(order, page)
		putChecksum(page, 17, order)
		if after := from.of(order, page); after != before || !PageHolds(page, 17) {
			t.Errorf("the sum of the log was %v and is %v; the page holds: %t", before, after, PageHolds(page, 17))
		}
	}
}

func BenchmarkChecksumOfAPage(b *testing.B) {
	page := make([]byte, 4096)
	b.SetBytes(4096)
	for b.Loop() {
		putChecksum(page, 17, binary.LittleEndian)
	}
}
