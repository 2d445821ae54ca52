package world

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"sort"

	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// maxAnswer is how many bytes of a list one answer holds; a page ends early when it would hold more.
const maxAnswer = 4 << 20

// listing is a list in its own order, of which only some places may belong to what was asked for. Places are 0 to n-1.
type listing[M proto.Message] struct {
	n     int
	key   func(i int) string // grows from place to place, or falls when falling is set
	falls bool
	keep  func(i int) bool // nil: all
	show  func(i int) M    // the message at a place that is kept
}

// A page token is a direction ('n' for what follows, 'p' for what precedes), a fingerprint of the request without its page, and the
// key of the item that it leans on.

// pageOf is one page of a list, and what lies around it.
func pageOf[M proto.Message](request proto.Message, p *kagziv1.PageRequest, l listing[M]) ([]M, *kagziv1.PageInfo, error) {
	size, err := pageSize(p)
	if err != nil {
		return nil, nil, err
	}
	place, back, err := l.start(request, p)
	if err != nil {
		return nil, nil, err
	}
	places := l.walk(place, back, size)
	messages, places := l.fit(places, back)
	info := &kagziv1.PageInfo{}
	if p.GetIncludeTotalCount() {
		info.TotalCount = l.count()
	}
	if len(places) == 0 {
		return messages, info, nil
	}
	from, to := places[0], places[len(places)-1]
	if len(l.walk(to+1, false, 1)) > 0 {
		info.HasMore, info.NextPageToken = true, pageToken('n', request, l.key(to))
	}
	if len(l.walk(from-1, true, 1)) > 0 {
		info.PrevPageToken = pageToken('p', request, l.key(from))
	}
	return messages, info, nil
}

func pageSize(p *kagziv1.PageRequest) (int, error) {
	n := int(p.GetPageSize())
	if n < 0 || n > maxPage {
		return 0, invalid("page_size", "must be between 0 (the default, %d) and %d, got %d", usualPage, maxPage, n)
	}
	if n == 0 {
		n = usualPage
	}
	return n, nil
}

// start is the first place that a page looks at, and whether it goes backwards from there.
func (l *listing[M]) start(request proto.Message, p *kagziv1.PageRequest) (place int, back bool, err error) {
	if p.GetPageToken() == "" {
		if p.GetLast() {
			return l.n - 1, true, nil
		}
		return 0, false, nil
	}
	if p.Last {
		return 0, false, invalid("page.last", "cannot be given together with a page_token")
	}
	raw, err := base64.RawURLEncoding.DecodeString(p.PageToken)
	if err != nil || len(raw) < 9 || raw[0] != 'n' && raw[0] != 'p' {
		return 0, false, invalid("page_token", "is not a token that this list gave")
	}
	if binary.BigEndian.Uint64(raw[1:9]) != fingerprint(request) {
		return 0, false, invalid("page_token", "belongs to another list or filter")
	}
	key := string(raw[9:])
	if raw[0] == 'n' {
		return sort.Search(l.n, func(i int) bool { return l.beyond(i, key, false) }), false, nil
	}
	return sort.Search(l.n, func(i int) bool { return l.beyond(i, key, true) }) - 1, true, nil
}

// beyond says that a place comes after a key or, with itself, that it is the key's own.
func (l *listing[M]) beyond(i int, key string, itself bool) bool {
	at := l.key(i)
	if at == key {
		return itself
	}
	return (at > key) != l.falls
}

// walk is the next places that are kept, at most so many, in the list's order.
func (l *listing[M]) walk(place int, back bool, most int) []int {
	var places []int
	step := 1
	if back {
		step = -1
	}
	for i := place; i >= 0 && i < l.n && len(places) < most; i += step {
		if l.keep == nil || l.keep(i) {
			places = append(places, i)
		}
	}
	if back {
		for i, j := 0, len(places)-1; i < j; i, j = i+1, j-1 {
			places[i], places[j] = places[j], places[i]
		}
	}
	return places
}

// fit is the part of a page that an answer has room for, at least one item: from its start or, going backwards, from its end.
func (l *listing[M]) fit(places []int, back bool) ([]M, []int) {
	messages, size := make([]M, len(places)), 0
	for n := range places {
		i := n
		if back {
			i = len(places) - 1 - n
		}
		messages[i] = l.show(places[i])
		if size += proto.Size(messages[i]); size <= maxAnswer || n == 0 {
			continue
		}
		if back {
			return messages[i+1:], places[i+1:]
		}
		return messages[:i], places[:i]
	}
	return messages, places
}

func (l *listing[M]) count() int64 {
	if l.keep == nil {
		return int64(l.n)
	}
	n := int64(0)
	for i := range l.n {
		if l.keep(i) {
			n++
		}
	}
	return n
}

func pageToken(direction byte, request proto.Message, key string) string {
	raw := binary.BigEndian.AppendUint64([]byte{direction}, fingerprint(request))
	return base64.RawURLEncoding.EncodeToString(append(raw, key...))
}

// fingerprint is equal for requests that differ only in their page.
func fingerprint(request proto.Message) uint64 {
	request = proto.Clone(request)
	m := request.ProtoReflect()
	if page := m.Descriptor().Fields().ByName("page"); page != nil {
		m.Clear(page)
	}
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(request)
	if err != nil {
		return 0 // text that is no UTF-8 cannot come over a wire either
	}
	h := fnv.New64a()
	h.Write([]byte(m.Descriptor().FullName()))
	h.Write(text)
	return h.Sum64()
}
