package wire

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"math"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// A page token holds a direction, a checksum and the cursor. It is opaque to clients. A token is
// refused if it was changed, or if it is used with another filter, because it would return a wrong
// page. The checksum is no signature: a forged token shows nothing that the same list would not
// show.
//
//	byte 0     'n' for what follows, 'p' for what precedes
//	bytes 1-8  checksum of the request without its page, and of the rest of the token
//	the rest   the cursor

// Cursors after the last item of every list with that order. The page before them is the last page.
var (
	// BelowIDs is for lists that are newest first, by id or by registration.
	BelowIDs = &engine.Cursor{ID: engine.ID{15: 1}, At: time.Unix(0, 0).UTC()}
	// BehindNames is for lists by name; no name contains a byte that large.
	BehindNames = &engine.Cursor{Name: "~"}
	// BehindSeries is for lists by sequence and attempt; no run has that many.
	BehindSeries = &engine.Cursor{Number: math.MaxInt32, Minor: math.MaxInt32}
)

// PageOf reads the page of a list request. behind is the cursor after the last item of the list.
func PageOf(list proto.Message, p *kagziv1.PageRequest, behind *engine.Cursor) (engine.Page, error) {
	page := engine.Page{Limit: int(p.GetPageSize()), Count: p.GetIncludeTotalCount()}
	switch {
	case page.Limit < 0 || page.Limit > engine.MaxPage:
		return page, engine.Invalid("page_size", "must be between 0 (the default, %d) and %d, got %d",
			engine.DefaultPage, engine.MaxPage, page.Limit)
	case page.Limit == 0:
		page.Limit = engine.DefaultPage
	}
	switch {
	case p.GetLast() && p.PageToken != "":
		return page, engine.Invalid("page.last", "cannot be given together with page.page_token")
	case p.GetLast():
		page.Before = behind
		return page, nil
	case p.GetPageToken() == "":
		return page, nil
	}
	strange := engine.Invalid("page_token",
		"is not a token that this list returned for this filter; leave it out to read the first page")
	raw, err := base64.RawURLEncoding.Strict().DecodeString(p.PageToken)
	if err != nil || len(raw) < 9 || binary.BigEndian.Uint64(raw[1:9]) != seal(raw[0], list, raw[9:]) {
		return page, strange
	}
	cursor, ok := decodeCursor(raw[9:])
	switch {
	case ok && raw[0] == 'n':
		page.After = &cursor
	case ok && raw[0] == 'p':
		page.Before = &cursor
	default:
		return page, strange
	}
	return page, nil
}

// PageTo returns the page info for a page whose first and last items have these cursors.
func PageTo(list proto.Message, asked engine.Page, info engine.PageInfo, first, last engine.Cursor) *kagziv1.PageInfo {
	switch asked.Before {
	case BelowIDs, BehindNames, BehindSeries:
		info.HasNext = false // a store assumes that there is an item at the cursor that a page precedes
	}
	page := &kagziv1.PageInfo{HasMore: info.HasNext, TotalCount: info.Total}
	if info.HasNext {
		page.NextPageToken = pageToken('n', list, encodeCursor(last))
	}
	if info.HasPrev {
		page.PrevPageToken = pageToken('p', list, encodeCursor(first))
	}
	return page
}

func pageToken(direction byte, list proto.Message, cursor []byte) string {
	raw := binary.BigEndian.AppendUint64([]byte{direction}, seal(direction, list, cursor))
	return base64.RawURLEncoding.EncodeToString(append(raw, cursor...))
}

// seal returns the checksum of a token. It depends on the direction, the cursor, and the request
// without its page.
func seal(direction byte, list proto.Message, cursor []byte) uint64 {
	list = proto.Clone(list)
	m := list.ProtoReflect()
	if page := m.Descriptor().Fields().ByName("page"); page != nil {
		m.Clear(page)
	}
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(list)
	if err != nil {
		return 0 // not reached: the message was just decoded, so it can be encoded
	}
	h := fnv.New64a()
	h.Write([]byte(m.Descriptor().FullName()))
	h.Write(binary.AppendUvarint(nil, uint64(len(text)))) // separates the parts
	h.Write(text)
	h.Write([]byte{direction})
	h.Write(cursor)
	return h.Sum64()
}

func encodeCursor(c engine.Cursor) []byte {
	raw := append([]byte{}, c.ID[:]...)
	at := int64(0)
	if !c.At.IsZero() {
		at = c.At.UnixMicro()
	}
	raw = binary.AppendVarint(raw, at)
	raw = binary.AppendVarint(raw, c.Number)
	raw = binary.AppendVarint(raw, int64(c.Minor))
	return append(raw, c.Name...)
}

func decodeCursor(raw []byte) (engine.Cursor, bool) {
	var c engine.Cursor
	if len(raw) < len(c.ID) {
		return c, false
	}
	raw = raw[copy(c.ID[:], raw):]
	var numbers [3]int64
	for i := range numbers {
		n, size := binary.Varint(raw)
		if size <= 0 {
			return c, false
		}
		numbers[i], raw = n, raw[size:]
	}
	if numbers[0] != 0 {
		c.At = time.UnixMicro(numbers[0]).UTC()
	}
	if numbers[1] < 0 || numbers[2] < 0 || numbers[2] > math.MaxInt32 {
		return c, false
	}
	c.Number, c.Minor, c.Name = numbers[1], int(numbers[2]), string(raw)
	return c, engine.CheckText("page_token", c.Name, 2*engine.MaxName) == nil
}

// HistoryToken returns the token for the rest of a history; empty if there is none.
func HistoryToken(sequence int64) string {
	if sequence == 0 {
		return ""
	}
	return strconv.FormatInt(sequence, 10)
}

// HistoryPlace reads a token of HistoryToken.
func HistoryPlace(token string) (int64, error) {
	if token == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(token, 10, 64)
	if err != nil || n < 1 {
		return 0, engine.Invalid("token", "is not a token from a task or a history")
	}
	return n, nil
}
