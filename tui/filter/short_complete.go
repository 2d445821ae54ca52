package filter

import (
	"slices"
	"strings"
)

// Known holds names for completion.
type Known struct {
	Types, Queues, Workers, Schedules, Tags []string // Tags holds keys
}

// Complete returns completions of a text, best first: its last word is completed as a key, or as a
// value of its key.
func Complete(text string, known Known) []string {
	begin := strings.LastIndexAny(text, " \t") + 1
	head, word := text[:begin], text[begin:]
	if word == "" {
		return nil
	}
	if strings.HasPrefix(word, "!") {
		head, word = head+"!", word[1:]
	}
	key, value, found := strings.Cut(word, ":")
	if !found {
		return within(head, "", word, offeredKeys(known))
	}
	earlier := ""
	if comma := strings.LastIndexByte(value, ','); comma >= 0 {
		earlier, value = value[:comma+1], value[comma+1:]
	}
	return within(head, key+":"+earlier, value, offeredValues(key, known))
}

// KeyOf returns the key whose value is typed at the end of the text; empty if none is.
func KeyOf(text string) string {
	word := strings.TrimPrefix(text[strings.LastIndexAny(text, " \t")+1:], "!")
	key, _, found := strings.Cut(word, ":")
	if !found {
		return ""
	}
	return key
}

// within returns the candidates with the typed prefix, each in its place in the text.
func within(head, before, typed string, candidates []string) []string {
	var texts []string
	for _, c := range candidates {
		if strings.HasPrefix(c, typed) && c != typed {
			texts = append(texts, head+before+c)
		}
	}
	return texts
}

func offeredKeys(known Known) []string {
	var keys []string
	for _, key := range shortKeys {
		if key != "tag" {
			keys = append(keys, key+":")
		}
	}
	for _, tag := range known.Tags {
		keys = append(keys, "tag."+quoteShort(tag, "=:")+"=")
	}
	return append(keys, "tag.")
}

func offeredValues(key string, known Known) []string {
	var values []string
	switch key {
	case "status":
		return append(strings.Split(strings.ToLower(strings.Join(Statuses(), " ")), " "), "open", "ended")
	case "since", "until":
		return []string{"15m", "1h", "24h", "7d", "30d"}
	case "type":
		values = known.Types
	case "queue":
		values = known.Queues
	case "worker":
		values = known.Workers
	case "schedule":
		values = known.Schedules
	}
	values = slices.Clone(values)
	for i, v := range values {
		values[i] = quoteShort(v, ",")
	}
	return values
}
