package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/filter"
	"github.com/kagzi/kagzi/tui/render"
)

// byServer has the server act on all that the filter chooses, and follows how far it is.
func (o *manyOptions) byServer(ctx context.Context, c *client, q filter.Query, p *progress) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := c.BulkWorkflows(ctx, &kagziv1.BulkWorkflowsRequest{Action: o.server, Filter: q.Request, Reason: o.reason, Limit: o.limit})
	if err != nil {
		return err
	}
	for {
		event, err := events.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		p.show(event)
	}
}

// sparse is how long a log is spared between two lines about the progress of the same thing.
const sparse = 10 * time.Second

// progress shows on stderr how far a bulk action is: on one line that is written again in a terminal, elsewhere with a
// line now and then. Each failure that it learns of gets a line of its own.
type progress struct {
	out   *output
	verb  string
	total int64
	now   func() time.Time

	last  *kagziv1.BulkWorkflowsProgress
	said  time.Time // when a log last got a line
	width int       // of the line that stands in the terminal
}

func (p *progress) show(event *kagziv1.BulkWorkflowsProgress) {
	if event.GetFailed() > p.last.GetFailed() {
		p.end()
		p.out.say("run %s: %s", event.GetLastRunId(), render.ErrorLine(event.GetLastError()))
	}
	if p.last == nil {
		p.said = p.now()
	}
	p.last = proto.CloneOf(event)
	if p.out.errTTY {
		line := p.line()
		_, _ = fmt.Fprint(p.out.err, "\r"+line+strings.Repeat(" ", max(p.width-len(line), 0))) // progress that cannot be shown is no reason to fail
		p.width = len(line)
	} else if now := p.now(); now.Sub(p.said) >= sparse {
		p.said = now
		p.out.say("%s", p.line())
	}
}

// end clears the line in the terminal, for what is written next.
func (p *progress) end() {
	if p.width > 0 {
		_, _ = fmt.Fprint(p.out.err, "\r"+strings.Repeat(" ", p.width)+"\r")
		p.width = 0
	}
}

// line is how far the action is: ASCII, and short enough for any terminal.
func (p *progress) line() string {
	before := ""
	if n := p.last.GetUnchanged(); n > 0 {
		before = fmt.Sprintf(" (%d of them before)", n)
	}
	return fmt.Sprintf("%s: %d of %d done%s, %d failed", p.verb, p.last.GetDone(), max(p.total, p.last.GetMatched()), before, p.last.GetFailed())
}

// print tells what came of it: in a line, where there was anything to do, or a document.
func (p *progress) print() error {
	return p.out.print(result{human: func() []string {
		if p.total == 0 {
			return nil
		}
		return []string{p.line()}
	}, document: p.document()})
}

func (p *progress) document() render.Object {
	last := p.last
	if last == nil {
		last = &kagziv1.BulkWorkflowsProgress{}
	}
	return append(render.Object{{Name: "action", Value: p.verb}}, render.Document(last).(render.Object)...)
}
