package servertest

import (
	"fmt"
	"strings"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// EventText returns an event as one line.
func EventText(e *kagziv1.ServerEvent) string {
	var b strings.Builder
	fmt.Fprint(&b, e.Level, " ", e.Message)
	for _, a := range e.Attributes {
		fmt.Fprint(&b, " ", a.Key, "=", a.Value)
	}
	return b.String()
}

func EventTexts(events []*kagziv1.ServerEvent) (lines []string) {
	for _, e := range events {
		lines = append(lines, EventText(e))
	}
	return lines
}
