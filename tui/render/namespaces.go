package render

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// NamespacesTable lists namespaces, one per row.
func NamespacesTable(namespaces []*kagziv1.Namespace, v View) Table {
	t := Table{Columns: []Column{
		{Title: "NAMESPACE", Flex: true}, {Title: "STATE"}, {Title: "RETENTION"}, {Title: "KEEP", Flex: true},
		{Title: "FAILURE QUEUE", Flex: true, Spare: 1},
		{Title: "CREATED", Spare: 2}, {Title: "NAME", Flex: true}, {Title: "DESCRIPTION", Flex: true, Spare: 3},
	}}
	for _, n := range namespaces {
		t.Rows = append(t.Rows, []Cell{
			Text(n.GetNamespace()), NamespaceState(n), {Text: Retention(n.GetRetention())}, Text(keepLine(n.GetKeep())),
			Text(n.GetFailureTaskQueue()),
			{Text: v.Time(n.GetCreatedAt())}, Text(n.GetDisplayName()), Text(n.GetDescription()),
		})
	}
	return t
}

// NamespaceState returns "ENABLED" or "DISABLED".
func NamespaceState(n *kagziv1.Namespace) Cell {
	if n.GetEnabled() {
		return Cell{Text: "ENABLED", Style: Good}
	}
	return Cell{Text: "DISABLED", Style: Bad}
}

// NamespacePairs returns the set properties of a namespace.
func NamespacePairs(n *kagziv1.Namespace, v View) []Pair {
	var p pairs
	p.text("Namespace", n.GetNamespace())
	p.cell("State", NamespaceState(n))
	p.text("Name", n.GetDisplayName())
	p.text("Description", n.GetDescription())
	p.text("Retention", Retention(n.GetRetention()))
	p.text("Keep", keepLine(n.GetKeep()))
	p.text("Failure queue", n.GetFailureTaskQueue())
	p.time("Created", n.GetCreatedAt(), v)
	p.time("Updated", n.GetUpdatedAt(), v)
	return p
}

// Retention returns how long ended runs are kept; without a duration the server's setting applies.
func Retention(d *durationpb.Duration) string {
	if d.AsDuration() == 0 {
		return "default"
	}
	return Days(d.AsDuration())
}

// keepLine writes retentions by outcome as the command line takes them: "completed=3d,failed=90d".
func keepLine(keep map[string]*durationpb.Duration) string {
	var parts []string
	for _, outcome := range slices.Sorted(maps.Keys(keep)) {
		parts = append(parts, outcome+"="+Days(keep[outcome].AsDuration()))
	}
	return strings.Join(parts, ",")
}

// Days writes a duration exactly, in days if they are whole: "30d", "36h", "1h30m".
func Days(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= day && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
