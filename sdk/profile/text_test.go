package profile

import (
	"path/filepath"
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

func TestFilesOfPowerShellAreRead(t *testing.T) {
	for name, text := range powerShell("[client]\r\naddress = \"box:7\"\r\n") {
		clean(t)
		t.Setenv("KAGZI_CONFIG", file(t, text))
		if p, err := Load(""); err != nil || p.Address != "box:7" {
			t.Errorf("settings in %s: %q, %v", name, p.Address, err)
		}
	}
	for name, text := range powerShell("kz_secret\r\n") {
		path := filepath.Join(t.TempDir(), "key")
		write(t, path, text, 0o600)
		if key, err := (Profile{APIKeyFile: path}).Key(); err != nil || string(key) != "kz_secret" {
			t.Errorf("key in %s: %q, %v", name, string(key), err)
		}
	}
}
