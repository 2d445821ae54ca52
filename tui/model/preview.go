package model

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// previewPause is how long an expression must stay as it is before the server is asked about it.
const previewPause = 150 * time.Millisecond

// Preview is when a cron expression that is being typed fires next.
type Preview struct {
	base
	expr, zone string
	count      int32
	pause      *timer
	drop       func() // of the question under way
	asking     bool
	ticks      []*timestamppb.Timestamp
}

// NewPreview will ask for so many ticks.
func NewPreview(l *Link, count int32) *Preview {
	p := &Preview{count: count}
	p.base = join(l, func(Change) {})
	return p
}

// Want asks about an expression in a zone once it has stayed so for 150 ms. An answer about an earlier one is dropped.
func (p *Preview) Want(expr, zone string) {
	if expr == p.expr && zone == p.zone {
		return
	}
	p.expr, p.zone, p.ticks, p.err = expr, zone, nil, nil
	p.pause.stop()
	if p.drop != nil {
		p.drop()
		p.drop = nil
	}
	p.asking = expr != ""
	if p.asking {
		p.pause = p.tasks.after(previewPause, p.ask)
	}
}

func (p *Preview) ask() {
	request := &kagziv1.PreviewScheduleRequest{CronExpr: p.expr, TimeZone: p.zone, Count: p.count}
	p.drop = ask(p.tasks, func(ctx context.Context) (*kagziv1.PreviewScheduleResponse, error) {
		return p.link.api.PreviewSchedule(ctx, request)
	}, func(answer *kagziv1.PreviewScheduleResponse, err error) {
		p.drop, p.asking, p.ticks, p.err = nil, false, answer.GetTicks(), err
		p.change()
	})
}

// Ticks are the next ones of the expression; none when it is asked about, or was refused.
func (p *Preview) Ticks() []*timestamppb.Timestamp { return p.ticks }

// Asking says that the answer has not come yet.
func (p *Preview) Asking() bool { return p.asking }

// Err is why the expression or the zone was refused; nil when it was not.
func (p *Preview) Err() error { return p.err }
