package wire

import (
	"slices"
	"sort"

	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// PageOfItems answers a request for a page of a list with as many of its items as one answer has
// room for, as messages, and what lies around them. place is where an item stands in the list.
func PageOfItems[V any, M proto.Message](
	request proto.Message, asked engine.Page, info engine.PageInfo, items []V, message func(*V) M,
	place func(*V) engine.Cursor,
) ([]M, *kagziv1.PageInfo) {
	list := make([]M, len(items))
	for i := range items {
		list[i] = message(&items[i])
	}
	from, to := Fit(list, asked, &info, messageSize[M])
	list, items = list[from:to], items[from:to]
	var first, last engine.Cursor
	if n := len(items); n > 0 {
		first, last = place(&items[0]), place(&items[n-1])
	}
	return list, PageTo(request, asked, info, first, last)
}

// PageOfWhole cuts a page out of a list that the store gave whole, by name, and tells what lies around it.
func PageOfWhole[V any](whole []V, page engine.Page, name func(*V) string) ([]V, engine.PageInfo) {
	from, to := 0, len(whole)
	if page.After != nil {
		from = sort.Search(len(whole), func(i int) bool { return name(&whole[i]) > page.After.Name })
	}
	if page.Before != nil {
		to = sort.Search(len(whole), func(i int) bool { return name(&whole[i]) >= page.Before.Name })
	}
	items := slices.Clone(whole[from:to])
	if page.Before != nil {
		slices.Reverse(items)
	}
	info := engine.PageInfo{}
	if page.Count {
		info.Total = int64(len(whole))
	}
	return engine.Cut(items[:min(len(items), page.Limit+1)], &page, &info), info
}

func messageSize[M proto.Message](m M) int { return proto.Size(m) }

// Fit is the part of a page that half of what one answer may hold has room for, at least one item: from its start or,
// for a backward page, from its end. What is left out is told as what lies around the page.
func Fit[M proto.Message](list []M, page engine.Page, info *engine.PageInfo, size func(M) int) (from, to int) {
	sum := 0
	if page.Before == nil {
		for i, m := range list {
			if sum += size(m); sum > engine.MaxMessage/2 && i > 0 {
				info.HasNext = true
				return 0, i
			}
		}
		return 0, len(list)
	}
	for i := len(list) - 1; i >= 0; i-- {
		if sum += size(list[i]); sum > engine.MaxMessage/2 && i < len(list)-1 {
			info.HasPrev = true
			return i + 1, len(list)
		}
	}
	return 0, len(list)
}
