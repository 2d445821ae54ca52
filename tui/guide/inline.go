package guide

import (
	"path"
	"regexp"
	"strings"

	"github.com/kagzi/kagzi/tui/render"
)

var (
	codeSpan = regexp.MustCompile("`[^`]*`")
	link     = regexp.MustCompile(`!?\[([^\]]*)\]\(([^)\s]*)\)`)
	strong   = regexp.MustCompile(`\*\*([^*]+)\*\*`)
	emphasis = regexp.MustCompile(`(^|[\s(])[*_]([^*_\s][^*_]*)[*_]`)
	escaped  = regexp.MustCompile(`\\([\\*_|<>#\[\]-])`)
)

// inline renders what stands within a line: a link to another topic names the command that shows
// it, one to elsewhere its address. Code spans keep their backticks. bold says that strong words
// may be bold.
func inline(text string, from Topic, o Layout, bold bool) string {
	var b strings.Builder
	at := 0
	prose := func(text string) string {
		text = strong.ReplaceAllStringFunc(text, func(found string) string {
			words := strong.FindStringSubmatch(found)[1]
			if !bold || !o.Strong {
				return words
			}
			// Each word by itself, so that wrapping leaves no code open at the end of a line.
			parts := strings.Fields(words)
			for i, p := range parts {
				parts[i] = render.Paint(p, render.Strong)
			}
			return strings.Join(parts, " ")
		})
		text = emphasis.ReplaceAllString(text, "$1$2")
		return escaped.ReplaceAllString(text, "$1")
	}
	text = links(text, from, o)
	for _, span := range codeSpan.FindAllStringIndex(text, -1) {
		b.WriteString(prose(render.Safe(text[at:span[0]])))
		b.WriteString(unbroken(render.Safe(text[span[0]:span[1]])))
		at = span[1]
	}
	b.WriteString(prose(render.Safe(text[at:])))
	return b.String()
}

// noBreak stands for a blank at which wrap does not break; wrap turns it back.
const noBreak = "\x01"

// unbroken keeps a short command together.
func unbroken(code string) string {
	if len(code) > 50 {
		return code
	}
	return strings.ReplaceAll(code, " ", noBreak)
}

// links puts text in the place of links.
func links(text string, from Topic, o Layout) string {
	return link.ReplaceAllStringFunc(text, func(found string) string {
		m := link.FindStringSubmatch(found)
		label, target := m[1], m[2]
		if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
			if label == target || strings.HasSuffix(target, "://"+label) {
				return target
			}
			return label + " (" + target + ")"
		}
		target, _, _ = strings.Cut(target, "#")
		if target == "" || from.Path == "" {
			return label
		}
		target = path.Join(path.Dir(from.Path), target)
		for _, t := range o.Topics {
			if t.Path == target || t.Path == target+"/README.md" {
				command := "kagzi help " + t.Name
				if o.Command != nil {
					command = o.Command(t.Name)
				}
				if !strings.Contains(label, command) {
					return label + " (`" + command + "`)"
				}
			}
		}
		return label
	})
}

// plain is inline text without any code of a terminal.
func plain(text string) string {
	return strings.ReplaceAll(inline(text, Topic{}, Layout{}, false), noBreak, " ")
}
