package wire

import "strings"

// Agent is the metadata of a call in which a program that acts for a person names itself: the audit
// log has it beside the key. It is a claim that nobody checks.
const Agent = "kagzi-agent"

// maxAgent limits such a name in bytes.
const maxAgent = 64

// AgentName returns a name as it can be sent and logged: printable ASCII of limited length.
func AgentName(name string) string {
	name = strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, name))
	return name[:min(len(name), maxAgent)]
}
