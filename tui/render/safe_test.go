package render

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// corpus holds texts that a malicious author would put into names, errors and payloads.
func corpus() []string {
	list := []string{
		"\x1b[31mred", "\x1b[2J\x1b[H", "\x1b]0;title\x07", "\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\",
		"\x1b]52;c;ZXZpbA==\x07",
		"\x1bP$q\"p\x1b\\", "\x1b_apc\x1b\\", "\x1b^pm\x1b\\", "\x1bXsos\x1b\\", "\x1bc", "\x1b[6n", "\x1b[?1049h",
		"\x1b[8;1;1t",
		"\x1b(0", "\x1b#8", "\x1b[>0q", "\u009b31m", "\u009d0;t\u009c", "\u0090q\u009c", "\u0085next", "\x9b31m",
		"\x9d0;x\x9c", "\xc2", "\xff\xfe",
		"a\rb", "a\nb", "a\tb", "a\x00b", "a\bb", "a\x0bb", "a\x0cb", "a\x07", "a\x0eb\x0fc", "a\x7fb", "a\x1ab",
		"\u202eabc", "\u202a", "\u202b", "\u202c", "\u202d", "\u2066", "\u2067", "\u2068", "\u2069", "\u200e",
		"\u200f", "\u061c",
		"\u2028", "\u2029", "zero\u200bwidth", "a\u200cb", "a\u200db", "\ufeffbom", "soft\u00adhyphen", "\u2060",
		"\u180e", "\u3164", "\u115f", "\ufe0f",
		"👨\u200d👩\u200d👧", "\U000e0041tag", "\U000e0100", "\ue000", "\U0010ffff", "\ufff9a\ufffab\ufffb",
		"Z" + strings.Repeat("\u0300", 40),
		"\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc0\x80", "\x1b[1;1H" + strings.Repeat("A", 5000),
	}
	for r := rune(0); r < 0x20; r++ {
		list = append(list, "c0"+string(r))
	}
	for r := rune(0x7f); r < 0xa0; r++ {
		list = append(list, "c1"+string(r))
	}
	return list
}

func assertHarmless(t *testing.T, in, out string) {
	t.Helper()
	if !utf8.ValidString(out) {
		t.Errorf("%q came out as invalid UTF-8: %q", in, out)
	}
	for _, r := range out {
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Bidi_Control,
			unicode.Variation_Selector) {
			t.Errorf("%q came out with %U: %q", in, r, out)
			return
		}
	}
}

func TestSafe(t *testing.T) {
	t.Run("nothing in the corpus stays dangerous", func(t *testing.T) {
		if n := len(corpus()); n < 60 {
			t.Fatalf("corpus has %d strings, want at least 60", n)
		}
		for _, s := range corpus() {
			got := Safe(s)
			assertHarmless(t, s, got)
			if again := Safe(got); again != got {
				t.Errorf("Safe(Safe(%q)) = %q, want %q", s, again, got)
			}
			for _, line := range SafeLines(s) {
				assertHarmless(t, s, line)
			}
		}
	})
	t.Run("escapes are visible", func(t *testing.T) {
		for in, want := range map[string]string{
			"a\x1b[31m": `a\x1b[31m`, "\u202e": `\u202e`, "\u009b": `\x9b`, "\n\r\t": `\n\r\t`, "\xff": "�",
			"\x7f":   `\x7f`,
			"\u200b": `\u200b`, "\U000e0041": `\U000e0041`,
		} {
			if got := Safe(in); got != want {
				t.Errorf("Safe(%q) = %q, want %q", in, got, want)
			}
		}
	})
	t.Run("ordinary text of any script is left alone", func(t *testing.T) {
		for _, s := range []string{"order-17", "Grüße", "Ωμέγα", "注文", "주문", "सदस्य", "e\u0301", "🎉",
			"a b\u00a0c", "שלום"} {
			if got := Safe(s); got != s {
				t.Errorf("Safe(%q) = %q", s, got)
			}
		}
	})
}

func TestTruncate_never_passes_the_width_it_is_given(t *testing.T) {
	for _, s := range []string{"", "abc", "注文です", "e\u0301e\u0301e\u0301", "a注b文c", "🎉🎉🎉"} {
		for cells := range 9 {
			got := Truncate(s, cells)
			if Width(got) > cells {
				t.Errorf("Truncate(%q, %d) = %q, %d cells wide", s, cells, got, Width(got))
			}
			if cells >= Width(s) && got != s {
				t.Errorf("Truncate(%q, %d) = %q, want it whole", s, cells, got)
			}
		}
	}
}

func FuzzSafe(f *testing.F) {
	for _, s := range corpus() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { assertHarmless(t, s, Safe(s)) })
}
