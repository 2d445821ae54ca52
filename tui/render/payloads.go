package render

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// PayloadLines returns a payload as lines: indented JSON, text as it is, other data in hexadecimal,
// cut after limit bytes (negative: not cut).
func PayloadLines(p *kagziv1.Payload, limit int) []string {
	if label, ok := Encrypted(p); ok {
		return []string{Safe(label)} // ciphertext is not readable
	}
	limit = limitOf(limit)
	var lines []string
	if label := payloadLabel(p); label != "" {
		lines = append(lines, label)
	}
	text := string(p.GetData())
	switch {
	case IsJSON(p):
		var indented bytes.Buffer
		if json.Indent(&indented, p.GetData(), "", "  ") == nil {
			text = indented.String()
		}
	case !readable(p.GetData()):
		data := p.GetData()
		left := len(data) - min(limit, len(data))
		lines = append(lines, SafeLines(hex.Dump(data[:len(data)-left]))...)
		if left > 0 {
			lines = append(lines, more(left))
		}
		return lines
	}
	shown, cutOff := cut(text, limit)
	lines = append(lines, SafeLines(shown)...)
	if cutOff {
		lines = append(lines, more(len(text)-len(shown)))
	}
	return lines
}

// PayloadLine returns a payload as one line of raw text: JSON without blanks, text as it is, or its
// size.
func PayloadLine(p *kagziv1.Payload, limit int) string {
	label, hidden := Encrypted(p)
	switch {
	case len(p.GetData()) == 0:
		return ""
	case hidden:
		return label
	case payloadLabel(p) != "" || !readable(p.GetData()):
		return fmt.Sprintf("<%s%s>", Bytes(int64(len(p.GetData()))), labelSuffix(p))
	}
	text := string(p.GetData())
	var compact bytes.Buffer
	if IsJSON(p) && json.Compact(&compact, p.GetData()) == nil {
		text = compact.String()
	}
	shown, cutOff := cut(text, limitOf(limit))
	if cutOff {
		shown += "…"
	}
	return shown
}

// Encrypted describes a payload that the SDK's codec encrypted, as raw text: "<encrypted,
// key=orders-2026, 123 B>". ok is false for all others.
func Encrypted(p *kagziv1.Payload) (text string, ok bool) {
	if p.GetMetadata()["encoding"] != "binary/encrypted" {
		return "", false
	}
	text = "<encrypted"
	if key := p.GetMetadata()["encryption-key"]; key != "" {
		text += ", key=" + key
	}
	return text + ", " + Bytes(int64(len(p.GetData()))) + ">", true
}

// payloadLabel describes a payload that is not plain JSON.
func payloadLabel(p *kagziv1.Payload) string {
	if p.GetMetadata()["encoding"] == "" && jsonType(p.GetMetadata()["content-type"]) {
		return ""
	}
	return "<" + Bytes(int64(len(p.GetData()))) + Safe(labelSuffix(p)) + ">"
}

func labelSuffix(p *kagziv1.Payload) string {
	suffix := ""
	if t := p.GetMetadata()["content-type"]; t != "" {
		suffix += " " + t
	}
	if e := p.GetMetadata()["encoding"]; e != "" {
		suffix += ", encoding " + e
	}
	return suffix
}

// readable reports whether bytes are text: valid UTF-8 with few control characters.
func readable(b []byte) bool {
	if !utf8.Valid(b) {
		return false
	}
	control := 0
	for _, r := range string(b) {
		if unicode.IsControl(r) && !strings.ContainsRune("\n\r\t", r) {
			control++
		}
	}
	return control*10 <= len(b)
}

func limitOf(limit int) int {
	if limit < 0 {
		return math.MaxInt
	}
	return limit
}

func more(bytes int) string {
	return fmt.Sprintf("… %s more (--payloads full shows all)", Bytes(int64(bytes)))
}
