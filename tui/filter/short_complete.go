package filter

import (
	"slices"
	"strings"
)

// Known are names that completion may offer.
type Known struct {
	Types, Queues, Workers, Schedules, Tags []string // Tags are keys
}

// Complete is what the text that is typed may become, best first: its last word finished as a key,
// or as a value of its key.
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

// KeyOf is the key whose value is typed at the end of the text; empty when none is.
func KeyOf(text string) string {
	word := strings.TrimPrefix(text[strings.LastIndexAny(text, " \t")+1:], "!")
	key, _, found := strings.Cut(word, ":")
	if !found {
		return ""
	}
	return key
}

// within is the candidates that begin with what is typed of them, in their place.
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
		return append(strings.Split(strings.ToLower(strings.Join(statusNames(), " ")), " "), "open", "ended")
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
