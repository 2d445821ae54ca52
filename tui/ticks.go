package tui

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// NextTicks returns the next ticks of a schedule, counted from now by the server's clock. A
// schedule that was told not to fire before some time has none before its next tick.
func NextTicks(ctx context.Context, api API, s *kagziv1.WorkflowSchedule,
	count int32) ([]*timestamppb.Timestamp, error) {
	request := &kagziv1.PreviewScheduleRequest{CronExpr: s.GetCronExpr(), TimeZone: s.GetTimeZone(), Count: count}
	answer, err := api.PreviewSchedule(ctx, request)
	ticks, next := answer.GetTicks(), s.GetNextFireAt().AsTime()
	if err != nil || len(ticks) == 0 || !next.After(ticks[0].AsTime()) {
		return ticks, err
	}
	request = &kagziv1.PreviewScheduleRequest{
		// the call returns ticks after this time
		CronExpr: s.GetCronExpr(), TimeZone: s.GetTimeZone(), Count: count,
		After: timestamppb.New(next.Add(-time.Microsecond)),
	}
	answer, err = api.PreviewSchedule(ctx, request)
	return answer.GetTicks(), err
}
