package daemon

import (
	"testing"
	"unicode/utf16"
)

// powerShell returns text as PowerShell writes it to a file: in UTF-16, or in UTF-8 with a mark.
func powerShell(text string) map[string]string {
	little, big := []byte{0xff, 0xfe}, []byte{0xfe, 0xff}
	for _, unit := range utf16.Encode([]rune(text)) {
		little, big = append(little, byte(unit), byte(unit>>8)), append(big, byte(unit>>8), byte(unit))
	}
	return map[string]string{"UTF-16": string(little), "UTF-16BE": string(big), "BOM": "\xef\xbb\xbf" + text}
}

func TestSettingsFileOfPowerShellIsRead(t *testing.T) {
	for name, text := range powerShell("[server]\r\nlisten = \"127.0.0.1:7\"\r\n") {
		c, _, err := settle([]string{"--config", written(t, text)}, nil)
		if err != nil || c.Listen != "127.0.0.1:7" {
			t.Errorf("%s: listen %q, %v", name, c.Listen, err)
		}
	}
}
