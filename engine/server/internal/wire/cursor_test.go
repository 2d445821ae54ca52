package wire

import (
	"encoding/base64"
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

var places = []engine.Cursor{
	{},
	{ID: engine.NewID(time.Now())},
	{At: time.UnixMicro(1_700_000_000_000_001).UTC(), Name: "worker-1"},
	{Number: 10_000, Minor: 3},
	{Name: strings.Repeat("n", engine.MaxName)},
}

func TestAPageTokenLeadsBackToItsPlace(t *testing.T) {
	list := &kagziv1.ListWorkflowsRequest{Namespace: "default", Tags: map[string]string{"a": "1", "b": "2", "c": "3"}}
	for _, place := range places {
		page := PageTo(list, engine.Page{}, engine.PageInfo{HasNext: true, HasPrev: true, Total: 7}, place, place)
		if !page.HasMore || page.TotalCount != 7 {
			t.Errorf("page = %v", page)
		}
		after, err := PageOf(list, &kagziv1.PageRequest{PageToken: page.NextPageToken}, BelowIDs)
		if err != nil || after.After == nil || *after.After != place || after.Before != nil ||
			after.Limit != engine.DefaultPage {
			t.Errorf("the next token of %+v leads to %+v, %v", place, after, err)
		}
		before, err := PageOf(list, &kagziv1.PageRequest{
			PageToken: page.PrevPageToken, PageSize: 9, IncludeTotalCount: true}, BelowIDs)
		if err != nil || before.Before == nil || *before.Before != place || before.After != nil || before.Limit != 9 ||
			!before.Count {
			t.Errorf("the previous token of %+v leads to %+v, %v", place, before, err)
		}
	}
	if page := PageTo(list, engine.Page{}, engine.PageInfo{}, places[1], places[1]); page.NextPageToken != "" ||
		page.PrevPageToken != "" || page.HasMore {
		t.Errorf("a list of one page has %v", page)
	}
}

func TestAPageTokenBelongsToItsListAndFilter(t *testing.T) {
	list := &kagziv1.ListWorkflowsRequest{Namespace: "default", WorkflowTypes: []string{"a"}}
	token := PageTo(list, engine.Page{}, engine.PageInfo{HasNext: true}, places[1], places[1]).NextPageToken
	for name, other := range map[string]proto.Message{
		"another namespace": &kagziv1.ListWorkflowsRequest{Namespace: "other", WorkflowTypes: []string{"a"}},
		"another filter":    &kagziv1.ListWorkflowsRequest{Namespace: "default", WorkflowTypes: []string{"b"}},
		"no filter":         &kagziv1.ListWorkflowsRequest{Namespace: "default"},
		"another list":      &kagziv1.ListWorkersRequest{Namespace: "default"},
	} {
		_, err := PageOf(other, &kagziv1.PageRequest{PageToken: token}, BelowIDs)
		if e, ok := err.(*engine.Error); !ok || e.Field != "page_token" {
			t.Errorf("%s: %v, want the token refused", name, err)
		}
	}
	same := proto.Clone(list).(*kagziv1.ListWorkflowsRequest)
	same.Page = &kagziv1.PageRequest{PageSize: 3, PageToken: token}
	if _, err := PageOf(same, same.Page, BelowIDs); err != nil {
		t.Errorf("another size of page: %v, want the token to hold", err)
	}
}

func TestPageSizes(t *testing.T) {
	list := &kagziv1.ListWorkflowsRequest{}
	for size, want := range map[int32]int{0: engine.DefaultPage, 1: 1, engine.MaxPage: engine.MaxPage,
		engine.MaxPage + 1: -1, -1: -1, math.MaxInt32: -1, math.MinInt32: -1} {
		page, err := PageOf(list, &kagziv1.PageRequest{PageSize: size}, BelowIDs)
		switch {
		case want < 0 && (err == nil || err.(*engine.Error).Field != "page_size"):
			t.Errorf("a page of %d: %v, want it refused", size, err)
		case want >= 0 && (err != nil || page.Limit != want):
			t.Errorf("a page of %d: limit %d, %v, want %d", size, page.Limit, err, want)
		}
	}
}

func TestATokenWithNumbersThatNoListHasIsRefused(t *testing.T) {
	list := &kagziv1.ListWorkflowsRequest{}
	for _, c := range []engine.Cursor{{Number: -1}, {Minor: -1}, {Minor: math.MaxInt32 + 1}, {Name: "a\x00"},
		{Name: "\xff"}, {Name: strings.Repeat("n", 1000)}} {
		if page, err := PageOf(list, &kagziv1.PageRequest{PageToken: pageToken('n', list, encodeCursor(c))},
			BelowIDs); err == nil {
			t.Errorf("a forged place %+v is taken as %+v", c, page.After)
		}
	}
}

func TestAPageTokenInWhichAnythingWasChangedIsRefused(t *testing.T) {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	list := &kagziv1.ListWorkflowsRequest{Namespace: "default"}
	for _, place := range places {
		page := PageTo(list, engine.Page{}, engine.PageInfo{HasNext: true, HasPrev: true}, place, place)
		for _, token := range []string{page.NextPageToken, page.PrevPageToken} {
			changed := []string{token[:len(token)-1], token + "A", token[1:]}
			for at := range token {
				for _, letter := range letters {
					if byte(letter) != token[at] {
						changed = append(changed, token[:at]+string(letter)+token[at+1:])
					}
				}
			}
			for _, other := range changed {
				if _, err := PageOf(list, &kagziv1.PageRequest{PageToken: other}, BelowIDs); err == nil {
					t.Fatalf("%q, of which %q was made, is taken for a token", other, token)
				}
			}
		}
	}
}

func FuzzPageToken(f *testing.F) {
	list := &kagziv1.ListWorkflowsRequest{Namespace: "default"}
	for _, place := range places {
		f.Add(PageTo(list, engine.Page{}, engine.PageInfo{HasNext: true}, place, place).NextPageToken)
	}
	f.Add("")
	f.Add("!!!")
	f.Add("n")
	f.Fuzz(func(t *testing.T, token string) {
		// With its seal put right it comes to where its place is read.
		if raw, err := base64.RawURLEncoding.DecodeString(token); err == nil && len(raw) > 9 {
			token = pageToken(raw[0], list, raw[9:])
		}
		page, err := PageOf(list, &kagziv1.PageRequest{PageToken: token}, BelowIDs)
		if err != nil {
			if e, ok := err.(*engine.Error); !ok || e.Field != "page_token" {
				t.Fatalf("%q: %v, want the field named", token, err)
			}
			return
		}
		for _, c := range []*engine.Cursor{page.After, page.Before} {
			if c == nil {
				continue
			}
			again, ok := decodeCursor(encodeCursor(*c))
			if !ok || !again.At.Equal(c.At) || again.ID != c.ID || again.Name != c.Name || again.Number != c.Number ||
				again.Minor != c.Minor {
				t.Fatalf("%q leads to %+v, which is written as %+v", token, *c, again)
			}
		}
	})
}

func TestHistoryTokens(t *testing.T) {
	for _, n := range []int64{1, 10_000, math.MaxInt64} {
		if got, err := HistoryPlace(HistoryToken(n)); err != nil || got != n {
			t.Errorf("history token of %d leads to %d, %v", n, got, err)
		}
	}
	if HistoryToken(0) != "" {
		t.Error("a whole history has a token")
	}
	for _, token := range []string{"0", "-1", "x", "1.5", " 1", "9223372036854775808", "\x00"} {
		if n, err := HistoryPlace(token); err == nil {
			t.Errorf("history token %q leads to %d", token, n)
		}
	}
}

func TestAPageThatIsTooLargeIsCut(t *testing.T) {
	var list []*kagziv1.Workflow
	for range 10 {
		list = append(list, &kagziv1.Workflow{Note: strings.Repeat("x", 1<<20)})
	}
	var info engine.PageInfo
	from, to := Fit(list, engine.Page{}, &info, messageSize)
	if from != 0 || to != 3 || !info.HasNext || info.HasPrev {
		t.Errorf("forward: %d to %d, %+v, want 0 to 3 and more after it", from, to, info)
	}
	info = engine.PageInfo{}
	from, to = Fit(list, engine.Page{Before: &engine.Cursor{}}, &info, messageSize)
	if from != 7 || to != 10 || !info.HasPrev || info.HasNext {
		t.Errorf("backward: %d to %d, %+v, want 7 to 10 and more before it", from, to, info)
	}
	huge := []*kagziv1.Workflow{{Note: strings.Repeat("x", 6<<20)}, {}}
	if from, to := Fit(huge, engine.Page{}, &info, messageSize); from != 0 || to != 1 {
		t.Errorf("one item that is too large alone: %d to %d, want it sent", from, to)
	}
	if from, to := Fit(huge[:0], engine.Page{}, &info, messageSize); from != 0 || to != 0 {
		t.Errorf("an empty list: %d to %d", from, to)
	}
}
