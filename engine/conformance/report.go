package conformance

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"
)

// report collects findings by section.
type report struct {
	Passed   int       `json:"passed"`
	Failed   int       `json:"failed"`
	Seconds  float64   `json:"seconds"`
	Error    string    `json:"error,omitempty"` // of the suite, or of a subject that cannot be started
	Sections []section `json:"sections"`
	Failures []Finding `json:"failures"`
}

// section counts the findings of one heading of PROTOCOL.md, or of random programs.
type section struct {
	Number  int    `json:"number,omitempty"` // 0: random programs
	Heading string `json:"heading"`
	Passed  int    `json:"passed"`
	Failed  int    `json:"failed"`
}

func (r *report) add(f Finding) {
	number, title := heading(f.Section)
	if number == len(headings) {
		number, title = 0, title+": "+f.Case
	}
	i := slices.IndexFunc(r.Sections, func(s section) bool { return s.Number == number && s.Heading == title })
	if i < 0 {
		i = len(r.Sections)
		r.Sections = append(r.Sections, section{Number: number, Heading: title})
	}
	if f.Failure == "" {
		r.Passed++
		r.Sections[i].Passed++
		return
	}
	r.Failed++
	r.Sections[i].Failed++
	r.Failures = append(r.Failures, f)
}

// end completes the report.
func (r *report) end(began time.Time, err error) {
	r.Seconds = float64(time.Since(began).Milliseconds()) / 1000
	if err != nil {
		r.Error = err.Error()
	}
	slices.SortFunc(r.Sections, func(a, b section) int {
		place := func(s section) string {
			if s.Number == 0 {
				return "9" + s.Heading
			}
			return fmt.Sprintf("0%02d", s.Number)
		}
		return strings.Compare(place(a), place(b))
	})
	if r.Failures == nil {
		r.Failures = []Finding{}
	}
}

func (r *report) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// writeTable writes the failures and a table of sections. Texts of the subject are escaped.
func (r *report) writeTable(w io.Writer) error {
	for _, f := range r.Failures {
		name := "§" + f.Section + " " + f.Case
		if f.Seed > 0 {
			name = "seed " + strconv.FormatUint(f.Seed, 10) + ", " + f.Case
		}
		fmt.Fprintf(w, "FAILED %s\n    %s\n", printable(name), printable(f.Failure))
		if f.Program != nil {
			text, err := json.Marshal(f.Program)
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "    program %s\n", printable(string(text)))
		}
	}
	if len(r.Failures) > 0 {
		fmt.Fprintln(w)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SECTION\tHEADING\tPASSED\tFAILED")
	for _, s := range r.Sections {
		number := "-"
		if s.Number > 0 {
			number = strconv.Itoa(s.Number)
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\n", number, s.Heading, s.Passed, s.Failed)
	}
	fmt.Fprintf(t, "\tall, in %.1f s\t%d\t%d\n", r.Seconds, r.Passed, r.Failed)
	return t.Flush()
}

// printable escapes text, so that a terminal prints it as it is.
func printable(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		c, n := utf8.DecodeRuneInString(text)
		switch {
		case c == '\n':
			b.WriteString("\n    ")
		case unicode.IsPrint(c) && (c != utf8.RuneError || n > 1):
			b.WriteRune(c)
		default:
			quoted := strconv.Quote(text[:n])
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		text = text[n:]
	}
	return b.String()
}
