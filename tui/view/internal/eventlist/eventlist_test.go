package eventlist

import (
	"testing"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestEventsOfAServerThatStartedAgainAreNotTakenForThoseBefore(t *testing.T) {
	events := func(message string) []*kagziv1.ServerEvent {
		return []*kagziv1.ServerEvent{{Sequence: 1, Message: message}, {Sequence: 2, Message: message}}
	}
	var rows Rows
	rows.Fill(events("before"), Filter{}, "default", false)
	rows.Fill(events("after"), Filter{}, "default", false)
	for _, row := range rows.List {
		if row.Text != "after" {
			t.Errorf("a row still says %q", row.Text)
		}
	}
}
