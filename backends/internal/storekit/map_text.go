package storekit

import "encoding/json"

// MapText is a map as the backends keep it: compact JSON with its keys sorted, as encoding/json
// writes it; "" for none. Nearly all maps on the path of a step are a payload's metadata, of one
// short pair that stands in JSON as it is: these are written and read here, in a third of the time.
func MapText(m map[string]string) string {
	if len(m) == 0 {
		return ""
	}
	if len(m) == 1 {
		for key, value := range m {
			if plain(key) && plain(value) {
				return `{"` + key + `":"` + value + `"}`
			}
		}
	}
	text, err := json.Marshal(m)
	if err != nil {
		panic("storekit: JSON of a map of texts: " + err.Error())
	}
	return string(text)
}

// ReadMapText is what MapText was given; nil for "".
func ReadMapText(text string) (m map[string]string, err error) {
	if text == "" {
		return nil, nil
	}
	if key, value, ok := onePair(text); ok {
		return map[string]string{key: value}, nil
	}
	err = json.Unmarshal([]byte(text), &m)
	return m, err
}

// onePair is the pair of a map that has only one, of plain texts.
func onePair(text string) (key, value string, ok bool) {
	const begin, middle, end = `{"`, `":"`, `"}`
	if len(text) < len(begin)+len(middle)+len(end) || text[:len(begin)] != begin || text[len(text)-len(end):] != end {
		return "", "", false
	}
	text = text[len(begin) : len(text)-len(end)]
	for i := 0; i+len(middle) <= len(text); i++ {
		if text[i] == '"' {
			key, value, ok = text[:i], text[i+len(middle):], text[i:i+len(middle)] == middle
			return key, value, ok && plain(key) && plain(value)
		}
	}
	return "", "", false
}

// plain says that s stands in JSON as it is, also as encoding/json writes it: for HTML.
func plain(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ', c > '~', c == '"', c == '\\', c == '<', c == '>', c == '&':
			return false
		}
	}
	return true
}
