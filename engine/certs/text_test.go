package certs

import (
	"os"
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
	files, _ := team(t, func(*Team) {})
	cert, key := text(t, files.Cert), text(t, files.Key)
	want, err := Show(files.Cert)
	if err != nil {
		t.Fatal(err)
	}
	keys := powerShell(string(key))
	for name, content := range powerShell(string(cert)) {
		dir := t.TempDir()
		f := Files{Cert: filepath.Join(dir, "c"), Key: filepath.Join(dir, "k")}
		for path, content := range map[string]string{f.Cert: content, f.Key: keys[name]} {
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if shown, err := Show(f.Cert); err != nil || len(shown) != len(want) {
			t.Errorf("%s: %d certificates, %v, want %d", name, len(shown), err, len(want))
		}
		if _, err := f.read(today); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
