package render

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestTable(t *testing.T) {
	table := Table{
		Columns: []Column{{Title: "ID"}, {Title: "NAME", Flex: true}, {Title: "N", Right: true, Spare: 1},
			{Title: "NOTE", Flex: true}},
		Rows: [][]Cell{{Text("1"), Text("a long name of a thing"), Text("7"), Text("")},
			{Text("22"), Text("注文"), Text("1234"), Text("")}},
	}
	t.Run("is as wide as it needs when nothing limits it", func(t *testing.T) {
		want := []string{"ID  NAME                       N  NOTE", "1   a long name of a thing     7",
			"22  注文                    1234"}
		if diff := cmp.Diff(want, table.Lines(Layout{})); diff != "" {
			t.Fatal(diff)
		}
	})
	t.Run("leaves out empty columns and cuts free text to fit", func(t *testing.T) {
		want := []string{"ID  NAME           N", "1   a long na…     7", "22  注文        1234"}
		if diff := cmp.Diff(want, table.Lines(Layout{Width: 20})); diff != "" {
			t.Fatal(diff)
		}
	})
	t.Run("gives up spare columns last", func(t *testing.T) {
		want := []string{"ID  NAME", "1   a long n…", "22  注文"}
		if diff := cmp.Diff(want, table.Lines(Layout{Width: 13})); diff != "" {
			t.Fatal(diff)
		}
	})
	t.Run("never passes the width while anything can give", func(t *testing.T) {
		for width := 12; width < 40; width++ {
			for _, line := range table.Lines(Layout{Width: width}) {
				if Width(line) > width {
					t.Errorf("line %q is %d wide, want at most %d", line, Width(line), width)
				}
			}
		}
	})
}

func TestRunsTable_fits_eighty_columns(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	run := &kagziv1.Workflow{
		RunId: "01936b2e-0000-7000-8000-000000000003", WorkflowType: "order-with-a-long-name",
		Status:    kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED,
		TaskQueue: "a-queue-with-a-name", ExternalId: "external-id-of-an-order", Note: strings.Repeat("note ", 20),
		CreatedAt: timestamppb.New(now), StartedAt: timestamppb.New(now),
	}
	for _, line := range RunsTable([]*kagziv1.Workflow{run}, View{Now: now}).Lines(Layout{Width: 80}) {
		if Width(line) > 80 {
			t.Errorf("line %q is %d wide", line, Width(line))
		}
	}
}

func TestTimes(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "now", 5 * time.Second: "5s ago", 3 * time.Minute: "3m ago", -2 * time.Hour: "in 2h",
		-2*time.Hour + time.Millisecond: "in 2h", -90 * time.Second: "in 1m", 47 * time.Hour: "47h ago",
		49 * time.Hour: "2d ago", 999 * time.Millisecond: "now",
	} {
		if got := Ago(d); got != want {
			t.Errorf("Ago(%v) = %q, want %q", d, got, want)
		}
	}
	now, never := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	for _, d := range []time.Duration{now.Sub(never), math.MinInt64, math.MinInt64 + 1, -math.MaxInt64 + time.Second} {
		if got := Ago(d); got != "in 106751d" {
			t.Errorf("Ago(%d) = %q, want all the days of 292 years", d, got)
		}
		if got := Near(d); got != "in 106751d23h" {
			t.Errorf("Near(%d) = %q, want all the days of 292 years", d, got)
		}
	}
	if got := Ago(never.Sub(now)); got != "106751d ago" {
		t.Errorf("Ago of as long ago = %q", got)
	}
	for d, want := range map[time.Duration]string{
		0: "0s", 350*time.Millisecond + 400: "350ms", 1234 * time.Millisecond: "1.2s", 123 * time.Second: "2m3s",
		26*time.Hour + 5*time.Minute: "26h5m",
	} {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%v) = %q, want %q", d, got, want)
		}
	}
	if got := Bytes(1536); got != "1.5 KiB" {
		t.Errorf("Bytes(1536) = %q", got)
	}
}

func TestPayloadLines(t *testing.T) {
	for name, c := range map[string]struct {
		payload *kagziv1.Payload
		limit   int
		want    []string
	}{
		"JSON is indented": {&kagziv1.Payload{Data: []byte(`{"a":[1]}`)}, -1,
			[]string{"{", `  "a": [`, "    1", "  ]", "}"}},
		"text is text": {&kagziv1.Payload{
			Data: []byte("a line\nand \x1bb"), Metadata: map[string]string{"content-type": "text/plain"}}, -1,
			[]string{"<13 B text/plain>", "a line", `and \x1bb`}},
		"binary data is hexadecimal": {&kagziv1.Payload{Data: []byte{0, 0xff}}, -1,
			[]string{"00000000  00 ff                                             |..|"}},
		"what is too long is cut": {&kagziv1.Payload{Data: []byte(`"abcdef"`)}, 4,
			[]string{`"abc`, "… 4 B more (--payloads full shows all)"}},
		"no character is cut in two": {&kagziv1.Payload{Data: []byte(`"éé"`)}, 2,
			[]string{`"`, "… 5 B more (--payloads full shows all)"}},
		"encoded data says with which": {&kagziv1.Payload{
			Data: []byte{1}, Metadata: map[string]string{"encoding": "aes\x1b"}}, -1,
			[]string{`<1 B, encoding aes\x1b>`, "00000000  01                                                |.|"}},
		"a binary payload is cut as well": {&kagziv1.Payload{Data: []byte{0, 1, 2}}, 1,
			[]string{"00000000  00                                                |.|",
				"… 2 B more (--payloads full shows all)"}},
	} {
		if diff := cmp.Diff(c.want, PayloadLines(c.payload, c.limit)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestListsFitANarrowTerminalWithTheirIDsWhole(t *testing.T) {
	const id = "01a203cc-889b-7a9f-a2d3-449afd1d7f43"
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	v := View{Now: now}
	run := &kagziv1.Workflow{RunId: id, WorkflowType: "order", TaskQueue: "orders",
		Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED, ExternalId: "order-17",
		CreatedAt: timestamppb.New(now.Add(-time.Minute)), Note: strings.Repeat("note ", 20)}
	worker := &kagziv1.Worker{WorkerId: id, Status: kagziv1.WorkerStatus_WORKER_STATUS_DRAINING,
		TaskQueue: "orders-and-refunds", WorkflowTypes: []string{"order", "refund", "report"},
		Version: "2.4.1", Hostname: "box-1", LastHeartbeatAt: timestamppb.New(now.Add(-time.Minute)),
		MaxConcurrent: 100}
	for name, table := range map[string]Table{
		"runs": RunsTable([]*kagziv1.Workflow{run}, v), "workers": WorkersTable([]*kagziv1.Worker{worker}, v)} {
		for _, width := range []int{74, 80, 100, 120} {
			for _, line := range table.Lines(Layout{Width: width}) {
				if Width(line) > width {
					t.Errorf("%s in %d cells: %q has %d", name, width, line, Width(line))
				}
			}
			if line := table.Lines(Layout{Width: width})[1]; !strings.HasPrefix(line, id+"  ") {
				t.Errorf("%s in %d cells: %q lacks the id %s", name, width, line, id)
			}
		}
	}
}
