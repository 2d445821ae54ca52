package agq

import (
	"strconv"
	"strings"
)

// reply builds answers in RESP2 or, with three, in RESP3. Its zero value is an empty one in RESP2.
type reply struct {
	text  []byte
	three bool
}

func (r *reply) line(mark byte, text string) {
	r.text = append(append(append(r.text, mark), text...), '\r', '\n')
}

// simple adds a simple string, such as OK.
func (r *reply) simple(text string) { r.line('+', oneLine(text)) }

// fail adds an error. Its text begins with a code, such as ERR.
func (r *reply) fail(text string) { r.line('-', oneLine(text)) }

// oneLine makes text fit into a line: it comes from users, and a line break would end the answer.
func oneLine(text string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(text, "?"))
}

func (r *reply) integer(n int64) { r.line(':', strconv.FormatInt(n, 10)) }

func (r *reply) bulk(text string) {
	r.line('$', strconv.Itoa(len(text)))
	r.text = append(append(r.text, text...), '\r', '\n')
}

// array begins an array of n items, which are added next.
func (r *reply) array(n int) { r.line('*', strconv.Itoa(n)) }

// dictionary begins n pairs of a key and a value; RESP2 has them as an array.
func (r *reply) dictionary(n int) {
	if r.three {
		r.line('%', strconv.Itoa(n))
		return
	}
	r.array(2 * n)
}

func (r *reply) bulks(list []string) {
	r.array(len(list))
	for _, text := range list {
		r.bulk(text)
	}
}

// null adds that there is no string.
func (r *reply) null() {
	if r.three {
		r.text = append(r.text, "_\r\n"...)
		return
	}
	r.text = append(r.text, "$-1\r\n"...)
}

// nullArray adds that there is no array.
func (r *reply) nullArray() {
	if r.three {
		r.null()
		return
	}
	r.text = append(r.text, "*-1\r\n"...)
}
