package profile

import (
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// fileText returns the content of a text file as UTF-8 without a byte order mark. PowerShell writes
// files in UTF-16 or with such a mark, by which they are recognised; other content is returned as it
// is.
func fileText(content []byte) []byte {
	text, _, err := transform.Bytes(unicode.BOMOverride(transform.Nop), content)
	if err != nil {
		return content // its reader says what is wrong
	}
	return text
}
