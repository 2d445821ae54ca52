package render

import (
	"strings"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// HookSignature returns a kind of signature as people write it: "github".
func HookSignature(s kagziv1.HookSignature) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "HOOK_SIGNATURE_"))
}

// HooksTable lists hooks, one per row.
func HooksTable(hooks []*kagziv1.Hook, v View) Table {
	t := Table{Columns: []Column{
		{Title: "HOOK", Flex: true}, {Title: "SIGNATURE"}, {Title: "QUEUE", Flex: true}, {Title: "TYPE", Flex: true},
		{Title: "OLD SECRET UNTIL"}, {Title: "CREATED"}, {Title: "PATH"},
	}}
	for _, h := range hooks {
		t.Rows = append(t.Rows, []Cell{
			Text(h.GetName()), {Text: HookSignature(h.GetSignature())}, Text(h.GetTaskQueue()), Text(h.GetWorkflowType()),
			{Text: v.Time(h.GetOldSecretUntil())}, {Text: v.Time(h.GetCreatedAt())}, Text(h.GetPath()),
		})
	}
	return t
}

// HookPairs describes a hook; url is where its deliveries are sent.
func HookPairs(h *kagziv1.Hook, url string, v View) []Pair {
	var p pairs
	p.text("Hook", h.GetName())
	p.text("URL", url)
	p.text("Signature", HookSignature(h.GetSignature()))
	p.text("Starts", h.GetWorkflowType()+" on queue "+h.GetTaskQueue())
	p.text("Namespace", h.GetNamespace())
	p.time("Created", h.GetCreatedAt(), v)
	p.time("Rotated", h.GetRotatedAt(), v)
	p.time("Old secret until", h.GetOldSecretUntil(), v)
	return p
}
