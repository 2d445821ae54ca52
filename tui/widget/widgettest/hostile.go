package widgettest

import (
	"fmt"
	"maps"
	"strings"
)

// Hostile returns more than three hundred texts that users may put into names, errors and payloads,
// and that could harm a terminal, the layout of a screen, or the reader. Many are a single
// character, one of every kind.
func Hostile() map[string]string {
	corpus := maps.Clone(hostile)
	for c := range rune(0x20) {
		corpus[fmt.Sprintf("control %02x", c)] = fmt.Sprintf("c0 %c here", c)
	}
	for c := rune(0x80); c < 0xa0; c++ {
		corpus[fmt.Sprintf("control %02x", c)] = fmt.Sprintf("c1 %c here", c)
		corpus[fmt.Sprintf("control byte %02x", c)] = "c1 " + string([]byte{byte(c)}) + " here"
	}
	for _, c := range unseen {
		corpus[fmt.Sprintf("unseen %04x", c)] = fmt.Sprintf("pass%cword", c)
	}
	return corpus
}

// unseen lists invisible characters and those that set the text direction.
var unseen = []rune{
	0x034f, 0x061c, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x180b, 0x180e, 0x200b, 0x200c, 0x200d, 0x200e, 0x200f, 0x2028,
	0x2029, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e,
	0x2060, 0x2061, 0x2062, 0x2063, 0x2064, 0x2066, 0x2067, 0x2068, 0x2069, 0x206a, 0x206b, 0x206c, 0x206d, 0x206e,
	0x206f, 0x3164, 0xfe00, 0xfe0f, 0xfeff, 0xffa0,
	0xfff9, 0xfffa, 0xfffb, 0x110bd, 0x1bca0, 0x1d173, 0x1d17a, 0xe0001, 0xe0020, 0xe007f, 0xe0100, 0xe01ef,
}

var hostile = map[string]string{
	// CSI: cursor moves, erasing, colours, scrolling and modes.
	"csi erase screen": "\x1b[2J\x1b[H", "csi erase line": "\x1b[2K\rgone", "csi cursor home": "\x1b[1;1Hroot#",
	"csi cursor up": "\x1b[99A\x1b[99D",
	"csi red":       "\x1b[31mred\x1b[0m", "csi conceal": "\x1b[8mhidden\x1b[28m", "csi blink": "\x1b[5mblink",
	"csi true colour":   "\x1b[38;2;255;0;0mx",
	"csi scroll region": "\x1b[1;2r", "csi scroll": "\x1b[99S\x1b[99T", "csi alternate screen off": "\x1b[?1049l",
	"csi alternate screen on": "\x1b[?1049h",
	"csi mouse on":            "\x1b[?1000h\x1b[?1006h", "csi paste off": "\x1b[?2004l",
	"csi cursor hidden": "\x1b[?25l",
	"csi autowrap off":  "\x1b[?7l",
	"csi synchronised":  "\x1b[?2026h", "csi report cursor": "\x1b[6n", "csi report device": "\x1b[c\x1b[>c\x1b[=c",
	"csi report status": "\x1b[5n",
	"csi window report": "\x1b[21t", "csi window resize": "\x1b[8;5;5t", "csi title stack": "\x1b[22;0t",
	"csi insert lines": "\x1b[99L\x1b[99M",
	"csi soft reset":   "\x1b[!p", "csi unfinished": "\x1b[",
	"csi parameters": "\x1b[1;2;3;4;5;6;7;8;9;10;11;12;13;14;15;16;17;18",
	"csi long":       "\x1b[" + strings.Repeat("9", 500) + "C",
	"csi keyboard":   "\x1b[>1u\x1b[>4;2m", "csi repeat": "x\x1b[65535b",
	// OSC: titles, links, the clipboard, the palette.
	"osc title": "\x1b]0;owned\x07", "osc title st": "\x1b]2;owned\x1b\\", "osc icon": "\x1b]1;owned\x07",
	"osc link":      "\x1b]8;;file:///etc/passwd\x1b\\click\x1b]8;;\x1b\\",
	"osc clipboard": "\x1b]52;c;b3duZWQ=\x07", "osc clipboard read": "\x1b]52;c;?\x07",
	"osc palette": "\x1b]4;1;#000000\x07", "osc foreground": "\x1b]10;#000000\x07",
	"osc working directory": "\x1b]7;file://h/tmp\x07", "osc notification": "\x1b]9;owned\x07",
	"osc prompt mark": "\x1b]133;A\x07", "osc unfinished": "\x1b]0;never ends",
	"osc iterm": "\x1b]1337;File=inline=1:AAAA\x07", "osc reset": "\x1b]104\x07",
	// DCS, APC, PM, SOS, and single escapes.
	"dcs sixel": "\x1bPq#0;2;0;0;0#0~~@@vv@@~~@@~~$\x1b\\", "dcs tmux": "\x1bPtmux;\x1b\x1b]52;c;b3duZWQ=\x07\x1b\\",
	"dcs request": "\x1bP$qm\x1b\\", "dcs unfinished": "\x1bPq",
	"apc kitty": "\x1b_Ga=T,f=24,s=1,v=1;AAAA\x1b\\", "apc screen title": "\x1bktitle\x1b\\",
	"pm": "\x1b^private\x1b\\", "sos": "\x1bXstring\x1b\\",
	"reset": "\x1bc", "charset": "\x1b(0qqqq\x1b(B", "keypad": "\x1b=\x1b>", "index": "\x1bD\x1bM\x1bE",
	"save cursor": "\x1b7\x1b8", "escape alone": "\x1b", "escape twice": "\x1b\x1b",
	"align": "\x1b#8", "vt52": "\x1b[?2l\x1bY  ",
	// C1 as characters, and as bytes.
	"c1 csi": "\u009b2J", "c1 osc": "\u009d0;owned\u009c", "c1 dcs": "\u0090q\u009c", "c1 apc": "\u009fx\u009c",
	"c1 nel": "a\u0085b", "c1 byte csi": "\x9b2J", "c1 byte osc": "\x9d52;c;b3duZWQ=\x07",
	// C0.
	"bel": "\a\a\a", "nul": "a\x00b", "backspace": "safe\b\b\b\bevil", "carriage return": "safe\revil",
	"line feed": "one\ntwo", "crlf": "one\r\ntwo\r\nthree", "tab": "a\tb\t\tc",
	"vertical tab": "a\vb\fc", "shift out": "\x0eqqq\x0f", "delete": "a\x7fb", "xoff": "\x13\x11", "enquiry": "\x05",
	"substitute": "\x1a\x18", "all of them": "\x01\x02\x03\x04\x06\x0e\x10\x12\x14\x15\x16\x17\x19\x1c\x1d\x1e\x1f",
	"blank lines": "\n\n\n\n\n\n", "lines of blanks": strings.Repeat(" \n", 40),
	// Tags of tview.
	"tag colour": "[red]alarm", "tag style": "[::b]bold[::-]", "tag region": `["r"]region[""]`,
	"tag link": "[:::https://example.com]link[:::-]", "tag full": "[#ff0000:#00ff00:bl]x[-:-:-]", "tag open": "[red",
	"tag empty":  "[]",
	"tag nested": "[[red]]", "tag escaped": "[red[]",
	// Text directions.
	"bidi override": "\u202Egnp.exe", "bidi override left": "\u202Dabc\u202C", "bidi embedding": "\u202Aabc\u202B",
	"bidi isolate": "\u2066abc\u2069", "bidi isolates open": "\u2067\u2068abc", "bidi marks": "\u200Ea\u200Fb\u061Cc",
	"hebrew": "שלום עולם", "arabic": "مرحبا بالعالم",
	// Zero-width characters, and lookalikes.
	"zero width": "a\u200Bb\u200Cc\u200Dd\u2060e\uFEFFf", "soft hyphen": "pass\u00ADword",
	"line separators": "a\u2028b\u2029c", "variation selectors": "a\uFE0Eb\uFE0Fc\U000E0100d",
	"tag characters":      "a\U000E0001\U000E0041\U000E007Fb",
	"invisible operators": "a\u2061\u2062\u2063\u2064b", "mongolian": "a\u180Eb",
	"hangul filler": "a\u3164b\u115Fc\uFFA0d", "interlinear": "\uFFF9a\uFFFAb\uFFFBc", "braille blank": "\u2800\u2800",
	"wide blank": "a\u3000b", "no-break blanks": "a\u00A0b\u2007c\u202Fd",
	"homoglyphs": "раураl.com", "replacement": "\uFFFD\uFFFD",
	// Widths.
	"emoji": "🚀🔥💥", "emoji family": "👨‍👩‍👧‍👦👩🏽‍🚀🏳️‍🌈", "flags": "🇩🇪🇺🇦🇯🇵🇩", "keycaps": "1️⃣#️⃣*️⃣", "wide": "日本語テキスト漢字",
	"wide long": strings.Repeat("漢", 400), "half and full": "ｱｲｳＡＢＣ", "hangul jamo": "각힣", "ambiguous": "§±×÷…—“”①Ⅳ■□▲",
	"combining": "e\u0301a\u0308o\u0302", "combining pile": "Z" + strings.Repeat("\u0351\u0334\u0322", 60),
	"combining first": "\u0301\u0301abc", "combining alone": strings.Repeat("\u20DD", 40),
	"devanagari": "क्षत्रिय नमस्ते", "thai": "สวัสดีชาวโลก", "tibetan": "བོད་སྐད", "arabic ligature": "﷽﷽﷽",
	// Invalid text.
	"invalid utf-8": "a\xff\xfe\x80b\xc3", "overlong": "\xc0\x9b\x5b2J\xe0\x80\x9b",
	"surrogates": "\xed\xa0\x80\xed\xb0\x80", "truncated": "abc\xf0\x9f\x98", "beyond unicode": "\xf4\x90\x80\x80",
	"utf-16": "\xff\xfea\x00b\x00", "private use": "\uE000\uE0B0\U000F0000\U0010FFFD",
	"noncharacters": "\uFFFE\uFFFF\U0001FFFE",
	// Formats, quotes, and commands of other programs.
	"format": "%s%n%d%!x%[99]d%%", "quotes": "'\"`\\'\"", "shell": "$(reboot);`id`&&|<>",
	"html": "<script>alert(1)</script>&amp;", "json": `","x":{"y":[1,2`, "formula": "=cmd|'/c calc'!A1",
	"sql": "'; drop table runs; --", "path": "../../../../etc/passwd", "template": "{{.}}${x}",
	// Sizes.
	"empty": "", "blank": " ", "blanks": strings.Repeat(" ", 300), "long word": strings.Repeat("x", 5000),
	"megabyte": strings.Repeat("0123456789abcdef", 1<<16), "megabyte of escapes": strings.Repeat("\x1b[31m", 1<<18/5),
	"many lines": strings.Repeat("line\n", 20_000),
	// Found in other programs.
	"csi many parameters": "\x1b[999999999999999999mmany", "csi paste key": "\x1b[20~paste",
	"csi pasted": "\x1b[200~pasted\x1b[201~", "csi in other colours": "\x1b[38;5;196mcolour",
	"ends in escape":    "ends in escape\x1b",
	"csi in the middle": "before\x1b[2Jafter", "csi at the end": "name\x1b[",
	"dcs request of a capability": "\x1bP+q544e\x1b\\", "osc title twice": "\x1b]0;a\x07\x1b]0;b\x07",
	"osc link without end": "\x1b]8;;http://example.org\x07link",
	"c1 csi in two bytes":  "\xc2\x9bm two bytes", "c1 index": "\u0084index", "c1 string": "\u0098string\u009c",
	"so many escapes": strings.Repeat("\x1b[2J", 300), "so many overrides": strings.Repeat("\u202e", 300),
	"tag background": "[:red]tag", "tag all three": "[red::bl]tag", "tag bracket": "[", "tag bracket closed": "]",
	"tag reset": "[-:-:-]tag", "bidi between": "abc שלום def", "bidi two isolates": "\u2066one\u2069\u2067two\u2069",
	"emoji skin": "skin 👍🏽", "emoji half a flag": "half flag 🇩", "emoji joined to nothing": "👩\u200d", "korean": "한국어",
	"full width": "ｆｕｌｌ", "thai vowel": "thai กำ", "hair space": "hair\u200aspace",
	"ideographic space": "wide space\u3000end",
	"unassigned":        "unassigned \U000e0fff", "overlong slash": "overlong \xc0\xaf", "cut in two": "cut \xe2\x82",
	"long words": strings.Repeat("long ", 400), "long wide": strings.Repeat("語", 2000),
	"option": "--help", "option short": "-rf", "home": "~", "separators": "a,b;c|d", "csv": "\"a\",b\n1;2",
	"quote": `quo"te`, "backslash": `back\slash`, "windows path": `C:\con\nul`, "percent": "%00%0a%1b",
	"entity": "&#27;[31m", "environment": "$HOME%PATH%", "url": "javascript:alert(1)", "yaml": "- a: &x !!str *x",
	"toml": "[server]\nlisten = 1",
}
