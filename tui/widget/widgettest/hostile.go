package widgettest

import (
	"fmt"
	"strings"
)

// Hostile is a corpus of texts that users may give names, errors and payloads, and that a terminal must not obey: more than a hundred,
// each with a word in it that harmless text would show.
func Hostile() []string {
	list := []string{
		// What terminals obey.
		"\x1b[31mred\x1b[0m", "\x1b[2Jcleared", "\x1b[1;1Hmoved", "\x1b[?1049lscreen", "\x1b[?25lhidden", "\x1b[?1000hmouse", "\x1b[6nreport", "\x1b[c who",
		"\x1b]0;title\x07", "\x1b]0;title\x1b\\", "\x1b]52;c;Y29waWVk\x07", "\x1b]8;;http://example.org\x07link\x1b]8;;\x07", "\x1b]4;1;rgb:00/00/00\x07",
		"\x1bP+q544e\x1b\\", "\x1b_Gf=24;AAAA\x1b\\", "\x1b^privacy\x1b\\", "\x1bcreset", "\x1b7saved\x1b8", "\x1b(0lines\x1b(B", "\x1b#8pattern", "\x1b",
		"\x1b[", "ends in escape\x1b", "\x1b[38;5;196mcolour", "\x1b[38;2;1;2;3mcolour", "\x1b[999999999999999999mmany", "\x1b[20~paste", "\x1b[200~pasted\x1b[201~",
		"\u009b31mC1 red", "\u009d0;C1 title\u009c", "\u0090C1 string\u009c", "\u0085next line", "\u0084index", "\x9b31m raw C1", "\xc2\x9bm two bytes",
		"bell\x07", "back\bspace", "a\rb", "line\nbreak", "tab\there", "vertical\vtab", "form\ffeed", "nul\x00byte", "del\x7fete", "so\x0eshift", "xon\x11xoff\x13", "sub\x1a",
		// What tview would obey.
		"[red]tag", "[::b]tag", "[-:-:-]tag", `["region"]tag[""]`, "[[red]]tag", "[red[]tag", "[", "]", "[]", "[#ff0000]tag", "[:red]tag", "[red::bl]tag", "[:::http://x]tag",
		// What changes the order.
		"\u202eevil\u202c", "\u202agood\u202c", "\u2066one\u2069", "\u2067two\u2069", "\u2068three\u2069", "\u200emark", "\u200fmark", "\u061cmark", "שלום", "مرحبا", "abc שלום def",
		// What hides.
		"zero\u200bwidth", "zero\u200cwidth", "zero\u200djoiner", "word\u2060joiner", "bom\ufeff", "soft\u00adhyphen", "mongolian\u180e", "hangul\u3164", "\u115ffiller",
		"invisible\u2062times", "shy\u034f", "tags\U000e0041\U000e0042", "variation\ufe0f", "variation\U000e0100", "interlinear\ufff9\ufffa\ufffb",
		// What takes another room than it seems.
		"日本語の名前", "ｆｕｌｌ", "한국어", "emoji 😀", "family 👨‍👩‍👧‍👦", "flag 🇩🇪", "half flag 🇩", "skin 👍🏽", "keycap 1️⃣", "e\u0301 combined", "\u0301 begins with a mark",
		"zalgo z" + strings.Repeat("\u0335\u0321", 60), "devanagari क्षि", "thai กำ", "tibetan ༀ", "ligature ﷽", "wide space\u3000end", "nbsp\u00a0end", "hair\u200aspace", "line\u2028separator",
		"para\u2029separator",
		// What is no text.
		"\xff\xfe broken", "cut \xe2\x82", "overlong \xc0\xaf", "surrogate \xed\xa0\x80", "beyond \xf4\x90\x80\x80", "noncharacter \ufffe", "private \ue000", "private \U000f0000",
		"unassigned \U000e0fff", "\ufffd replacement",
		// What is long, empty or has a meaning elsewhere.
		"", " ", strings.Repeat(" ", 300), strings.Repeat("long ", 400), strings.Repeat("x", 5000), strings.Repeat("語", 2000), strings.Repeat("\x1b[2J", 300), strings.Repeat("\u202e", 300),
		"'; drop table runs; --", "$(reboot)", "`reboot`", "../../etc/passwd", "%s%n%x", "<script>alert(1)</script>", `quo"te`, `back\slash`, "{{.Template}}", "a,b;c|d", "-rf", "--help", "~",
	}
	for _, r := range []rune{0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x0f, 0x10, 0x14, 0x18, 0x1c, 0x1d, 0x1e, 0x1f, 0x80, 0x81, 0x8d, 0x8e, 0x8f, 0x98, 0x9e, 0x9f} {
		list = append(list, fmt.Sprintf("control %c character %x", r, r))
	}
	return list
}
