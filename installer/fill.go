package installer

import "strings"

// fill fills the fields {Name} of a text. A line "?Name rest" stays as its rest if the field has a
// value, and is repeated for each of its values. This is not package text/template, because a program
// with that has each method of each type: 3.8 MB more.
func fill(text string, fields map[string][]string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		again := 1
		name := ""
		if rest, conditional := strings.CutPrefix(line, "?"); conditional {
			name, line, _ = strings.Cut(rest, " ")
			again = len(fields[name])
		}
		for i := range again {
			pairs := make([]string, 0, 2*len(fields))
			for field, values := range fields {
				switch {
				case field == name:
					pairs = append(pairs, "{"+field+"}", values[i])
				case len(values) > 0:
					pairs = append(pairs, "{"+field+"}", values[0])
				}
			}
			b.WriteString(strings.NewReplacer(pairs...).Replace(line))
		}
	}
	return b.String()
}

// some returns a value that is not empty.
func some(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}
