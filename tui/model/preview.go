package model

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// previewPause is how long an expression must stay unchanged before the server is asked.
const previewPause = 150 * time.Millisecond

// Preview holds the next ticks of a cron expression while it is typed.
type Preview struct {
	base
	expr, zone string
	count      int32
	pause      *timer
	drop       func() // cancels the open call
	asking     bool
	ticks      []*timestamppb.Timestamp
}

// NewPreview returns a preview of count ticks.
func NewPreview(l *Link, count int32) *Preview {
	p := &Preview{count: count}
	p.base = join(l, func(Change) {})
	return p
}

// Want asks about an expression in a zone once it stayed unchanged for 150 ms. Answers about
// earlier ones are dropped.
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

// Ticks returns the next ticks; nil while the answer is awaited, or if the expression was refused.
func (p *Preview) Ticks() []*timestamppb.Timestamp { return p.ticks }

// Asking reports whether the answer is awaited.
func (p *Preview) Asking() bool { return p.asking }

// Err returns why the expression or the zone was refused.
func (p *Preview) Err() error { return p.err }
