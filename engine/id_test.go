package engine

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestNewIDsOfOneProcessGrow(t *testing.T) {
	start := time.Now()
	moments := []time.Duration{0, 0, time.Nanosecond, time.Millisecond, -time.Second, -time.Hour, -time.Hour,
		time.Second, 0}
	var last ID
	for _, d := range moments {
		for range 5000 { // more than the 4096 fractions of one millisecond
			id := NewID(start.Add(d))
			if bytes.Compare(id[:], last[:]) <= 0 {
				t.Fatalf("NewID(start%+v) = %s, not after %s", d, id, last)
			}
			last = id
		}
	}
}

func TestNewIDsFromManyGoroutinesDiffer(t *testing.T) {
	const goroutines, each = 8, 2000
	ids := make([][]ID, goroutines)
	now := time.Now()
	var group sync.WaitGroup
	for g := range goroutines {
		group.Go(func() {
			for range each {
				ids[g] = append(ids[g], NewID(now))
			}
		})
	}
	group.Wait()
	seen := map[ID]bool{}
	for _, list := range ids {
		if !slices.IsSortedFunc(list, func(a, b ID) int { return bytes.Compare(a[:], b[:]) }) {
			t.Error("the ids that one goroutine got do not grow")
		}
		for _, id := range list {
			if seen[id] {
				t.Fatalf("%s was minted twice", id)
			}
			seen[id] = true
		}
	}
}

func TestNewIDIsAUUIDv7OfItsMoment(t *testing.T) {
	// ahead of every id minted so far in this process
	future := time.Now().Add(24 * time.Hour).Truncate(time.Millisecond)
	minted.Lock()
	before := minted.last
	minted.Unlock()
	t.Cleanup(func() {
		minted.Lock()
		minted.last = before
		minted.Unlock()
	})
	id := NewID(future)
	text := id.String()
	if text[14] != '7' {
		t.Errorf("version of %s = %c, want 7", text, text[14])
	}
	if strings.IndexByte("89ab", text[19]) < 0 {
		t.Errorf("variant of %s = %c, want one of 8 9 a b", text, text[19])
	}
	var ms int64
	for _, b := range id[:6] {
		ms = ms<<8 | int64(b)
	}
	if ms != future.UnixMilli() {
		t.Errorf("milliseconds of %s = %d, want %d", text, ms, future.UnixMilli())
	}
	first := FirstID(future)
	if bytes.Compare(first[:], id[:]) > 0 {
		t.Errorf("FirstID(%s) = %s, which is after %s, minted then", future, first, id)
	}
	next := FirstID(future.Add(time.Millisecond))
	if bytes.Compare(next[:], id[:]) <= 0 {
		t.Errorf("FirstID a millisecond later = %s, not after %s", next, id)
	}
}

func TestFirstIDBefore1970IsZero(t *testing.T) {
	if id := FirstID(time.Unix(-1, 0)); !id.IsZero() {
		t.Errorf("FirstID(1969) = %s, want the zero id", id)
	}
}

func TestParseIDReadsWhatStringWrites(t *testing.T) {
	for range 100 {
		id := NewID(time.Now())
		for _, text := range []string{id.String(), strings.ToUpper(id.String())} {
			got, err := ParseID(text)
			if err != nil || got != id {
				t.Fatalf("ParseID(%q) = %v, %v, want %v", text, got, err, id)
			}
		}
	}
	if got := (ID{}).String(); got != "" {
		t.Errorf("the zero id prints as %q, want nothing", got)
	}
}

func TestParseIDRefusesOtherTextThanUUIDs(t *testing.T) {
	good := "0198a3c4-1b2d-7e6f-8a9b-0c1d2e3f4a5b"
	for _, text := range []string{
		"", " ", good[1:], good + "0", " " + good[1:], strings.ReplaceAll(good, "-", ""), "{" + good[1:35] + "}",
		strings.Replace(good, "-", "0", 1), good[:35] + "g", good[:35] + "\x00", good[:34] + "é",
		"0198a3c4-1b2d-7e6f-8a9b-0c1d2e3f4a-b",
		"urn:uuid:" + good,
	} {
		if id, err := ParseID(text); err == nil || !id.IsZero() {
			t.Errorf("ParseID(%q) = %s, %v, want an error", text, id, err)
		}
	}
}

func FuzzParseID(f *testing.F) {
	f.Add("0198a3c4-1b2d-7e6f-8a9b-0c1d2e3f4a5b")
	f.Add("")
	f.Add(strings.Repeat("-", 36))
	f.Fuzz(func(t *testing.T, text string) {
		id, err := ParseID(text)
		if err == nil && !id.IsZero() && id.String() != strings.ToLower(text) {
			t.Errorf("ParseID(%q) prints as %q", text, id)
		}
	})
}

func TestIDsWithAPrefixLieBetweenTheFirstAndTheLast(t *testing.T) {
	for _, c := range []struct{ prefix, first, last string }{
		{"0197", "01970000-0000-0000-0000-000000000000", "0197ffff-ffff-ffff-ffff-ffffffffffff"},
		{"0197a0b1-", "0197a0b1-0000-0000-0000-000000000000", "0197a0b1-ffff-ffff-ffff-ffffffffffff"},
		{"0197A", "0197a000-0000-0000-0000-000000000000", "0197afff-ffff-ffff-ffff-ffffffffffff"},
		{"01970000-0000-7000-8000-000000000001", "01970000-0000-7000-8000-000000000001",
			"01970000-0000-7000-8000-000000000001"},
	} {
		first, last, ok := IDsWith(c.prefix)
		if !ok || first.String() != c.first || last.String() != c.last {
			t.Errorf("IDsWith(%q) = %s, %s, %v, want %s, %s", c.prefix, first, last, ok, c.first, c.last)
		}
	}
	for _, prefix := range []string{"", "order-17", "0197a0b1c", "01970000-0000-7000-8000-0000000000012"} {
		if first, last, ok := IDsWith(prefix); ok {
			t.Errorf("IDsWith(%q) = %s, %s, want none", prefix, first, last)
		}
	}
}

func TestTokensRoundTripOverTheWireAndDiffer(t *testing.T) {
	seen := map[Token]bool{}
	for range 1000 {
		token := NewToken()
		if token.IsZero() || seen[token] {
			t.Fatal("a token came twice, or is zero")
		}
		seen[token] = true
		got, err := ParseToken(token.Wire())
		if err != nil || got != token {
			t.Fatalf("ParseToken(Wire) = %v, %v, want the same token", got.Wire(), err)
		}
	}
	for _, text := range []string{"", "00", strings.Repeat("0", 31), strings.Repeat("0", 33), strings.Repeat("g", 32),
		strings.Repeat("0", 31) + "\x00"} {
		if _, err := ParseToken(text); err == nil {
			t.Errorf("ParseToken(%q) is accepted", text)
		}
	}
}

func TestATokenNeverPrints(t *testing.T) {
	token := NewToken()
	lease := Lease{RunID: NewID(time.Now()), Token: token}
	for _, format := range []string{"%v", "%s", "%+v", "%#v", "%q"} {
		for _, value := range []any{token, &token, lease, ClaimSlot{Token: token}, Task{Lease: lease}} {
			text := fmt.Sprintf(format, value)
			if strings.Contains(text, token.Wire()) {
				t.Errorf("%s of %T shows the token", format, value)
			}
		}
	}
}

func TestAnIDIsLoggedAsItIsWritten(t *testing.T) {
	id := NewID(time.Now())
	var text, lines bytes.Buffer
	slog.New(slog.NewTextHandler(&text, nil)).Info("claimed", "run", id)
	slog.New(slog.NewJSONHandler(&lines, nil)).Info("claimed", "run", id)
	if want := "run=" + id.String(); !strings.Contains(text.String(), want) {
		t.Errorf("logged %q, want %q in it", text.String(), want)
	}
	if want := `"run":"` + id.String() + `"`; !strings.Contains(lines.String(), want) {
		t.Errorf("logged %q, want %q in it", lines.String(), want)
	}
}
