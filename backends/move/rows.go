package move

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/kagzi/kagzi/engine"
)

// sum identifies a set of rows in any order: the sum of 128 bits of each row's SHA-256, and the
// number of rows.
type sum struct {
	high, low uint64
	rows      int64
}

func (s *sum) add(o sum) {
	var carry uint64
	s.low, carry = bits.Add64(s.low, o.low, 0)
	s.high, _ = bits.Add64(s.high, o.high, carry)
	s.rows += o.rows
}

func (s sum) String() string { return fmt.Sprintf("%016x%016x", s.high, s.low) }

// sumOf decodes the sum in a Filling.
func sumOf(f engine.FillingTable) (s sum, err error) {
	if f.Sum != "" {
		if _, err := fmt.Sscanf(f.Sum, "%16x%16x", &s.high, &s.low); err != nil {
			return s, fmt.Errorf("the progress of an earlier copy holds no sum: %w", err)
		}
	}
	s.rows = f.Rows
	return s, nil
}

// summer adds up the rows of a table.
type summer struct {
	order   []int // of the columns, by name
	hash    hash.Hash
	scratch []byte
}

func newSummer(t *engine.CopyTable) *summer {
	order := make([]int, len(t.Columns))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(t.Columns[a].Name, t.Columns[b].Name) })
	return &summer{order: order, hash: sha256.New()}
}

// sum returns the sum of rows, and their approximate size in bytes.
func (h *summer) sum(rows [][]any) (total sum, size int64) {
	for _, row := range rows {
		h.hash.Reset()
		for _, i := range h.order {
			h.scratch = appendValue(h.scratch[:0], row[i])
			size += int64(len(h.scratch))
			h.hash.Write(h.scratch)
		}
		digest := h.hash.Sum(h.scratch[:0])
		total.add(sum{high: binary.BigEndian.Uint64(digest), low: binary.BigEndian.Uint64(digest[8:]), rows: 1})
	}
	return total, size
}

// appendValue appends a value so that different values give different bytes: type, length, content.
func appendValue(out []byte, value any) []byte {
	switch v := value.(type) {
	case nil:
		return append(out, 'n')
	case int64:
		return binary.BigEndian.AppendUint64(append(out, 'i'), uint64(v))
	case string:
		return append(binary.BigEndian.AppendUint64(append(out, 't'), uint64(len(v))), v...)
	case []byte:
		return append(binary.BigEndian.AppendUint64(append(out, 'b'), uint64(len(v))), v...)
	}
	panic(fmt.Sprintf("a column holds a %T", value))
}

// encodeKey encodes a key for a Filling, because JSON can hold neither bytes nor every text.
func encodeKey(key []any) []string {
	words := make([]string, len(key))
	for i, value := range key {
		switch v := value.(type) {
		case int64:
			words[i] = "i" + strconv.FormatInt(v, 10)
		case string:
			words[i] = "t" + hex.EncodeToString([]byte(v))
		case []byte:
			words[i] = "b" + hex.EncodeToString(v)
		}
	}
	return words
}

// decodeKey decodes a key; no words give nil.
func decodeKey(words []string) (key []any, err error) {
	for _, word := range words {
		if word == "" {
			return nil, errors.New("the progress of an earlier copy holds no key")
		}
		var value any
		var raw []byte
		switch kind := word[0]; kind {
		case 'i':
			value, err = strconv.ParseInt(word[1:], 10, 64)
		default:
			raw, err = hex.DecodeString(word[1:])
			if value = raw; kind == 't' {
				value = string(raw)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("the progress of an earlier copy holds no key: %w", err)
		}
		key = append(key, value)
	}
	return key, nil
}

// nameRow describes a row in an error.
func nameRow(t *engine.CopyTable, row []any) string {
	var words []string
	for i, value := range t.KeyOf(row) {
		word := fmt.Sprint(value)
		switch v := value.(type) {
		case string:
			word = strconv.Quote(v)
		case []byte:
			word = hex.EncodeToString(v)
			if len(v) == len(engine.ID{}) {
				word = engine.ID(v).String()
			}
		}
		words = append(words, t.Key[i]+" "+word)
	}
	return t.Name + " with " + strings.Join(words, ", ")
}

// narrower says whether to may refuse values that from allows.
func narrower(from, to engine.CopyColumn) bool {
	return to.Strict && !from.Strict || to.Kind == engine.CopyNumber &&
		(to.Least > from.Least || to.Most < from.Most) ||
		to.Length != 0 && to.Length != from.Length
}

// misfit returns why a column does not take a value; empty if it does.
func misfit(c engine.CopyColumn, value any) string {
	switch v := value.(type) {
	case int64:
		if v < c.Least || v > c.Most {
			return fmt.Sprintf("holds the number %d, and the target takes %d to %d", v, c.Least, c.Most)
		}
	case string:
		if c.Strict && strings.ContainsRune(v, 0) {
			return "holds a text with a NUL, which the target cannot keep"
		}
		if c.Strict && !utf8.ValidString(v) {
			return "holds a text that is not UTF-8, which the target cannot keep"
		}
	case []byte:
		if c.Length != 0 && len(v) != c.Length {
			return fmt.Sprintf("holds %d bytes, and the target wants %d", len(v), c.Length)
		}
	}
	return ""
}

// survey checks for rows that the target would refuse, before anything is changed.
func (c *mover) survey(ctx context.Context) error {
	for i := range c.tables {
		from, to := &c.sources[i], &c.tables[i]
		some := engine.CopyTable{Name: from.Name, Key: from.Key}
		var checks []engine.CopyColumn
		for _, column := range from.Columns {
			check := to.Columns[to.At(column.Name)]
			suspect := narrower(column, check)
			if suspect || slices.Contains(from.Key, column.Name) {
				some.Columns = append(some.Columns, column)
				checks = append(checks, check)
			}
		}
		if !slices.ContainsFunc(some.Columns, func(column engine.CopyColumn) bool {
			return narrower(column, to.Columns[to.At(column.Name)])
		}) {
			continue
		}
		if err := c.surveyTable(ctx, &some, checks); err != nil {
			return err
		}
	}
	return nil
}

func (c *mover) surveyTable(ctx context.Context, t *engine.CopyTable, checks []engine.CopyColumn) error {
	for r := (engine.CopyRange{Table: t, Rows: batchRows, Bytes: batchBytes}); ; {
		rows, err := c.from.Read(ctx, r)
		if err != nil {
			return fmt.Errorf("read table %s: %w", t.Name, err)
		}
		if len(rows) == 0 {
			return nil
		}
		for _, row := range rows {
			for i, check := range checks {
				if why := misfit(check, row[i]); why != "" {
					return fmt.Errorf("the row of %s: column %s %s; nothing was changed", nameRow(t, row),
						check.Name, why)
				}
			}
		}
		r.After = t.KeyOf(rows[len(rows)-1])
	}
}
