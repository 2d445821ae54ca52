package wire

import (
	"slices"
	"sort"

	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// PageOfItems returns the messages of a page, as many as fit in one answer, and its page info.
// place returns the cursor of an item.
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

// PageOfWhole returns a page of a complete list that is sorted by name, and its page info.
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

// Fit returns which items of a page fit in half the size of an answer, but at least one: from the
// start of the page or, for a backward page, from its end. It sets HasNext or HasPrev of info if it
// leaves items out.
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
