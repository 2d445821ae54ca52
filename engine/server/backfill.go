package server

import (
	"context"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/auth"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// backfillAtOnce limits the runs that one transaction starts.
const backfillAtOnce = 100

// BackfillWorkflowSchedule starts the runs of past ticks that have none yet, in several
// transactions. After an error in between, a repeated call continues.
func (s *Server) BackfillWorkflowSchedule(ctx context.Context,
	request *kagziv1.BackfillWorkflowScheduleRequest) (*kagziv1.BackfillWorkflowScheduleResponse, error) {
	p, err := s.backfillOf(ctx, request)
	if err != nil {
		return nil, err
	}
	schedule, err := s.store.GetSchedule(ctx, p.Namespace, p.Ref)
	if err != nil {
		return nil, err
	}
	ticks, err := ticksBetween(&schedule, p.From, p.To)
	if err != nil {
		return nil, err
	}
	p.Ref = schedule.ID.String()
	answer := &kagziv1.BackfillWorkflowScheduleResponse{}
	for portion := range slices.Chunk(ticks, backfillAtOnce) {
		p.Ticks, p.AuditID = nil, engine.NewID(p.Now)
		for _, at := range portion {
			p.Ticks = append(p.Ticks, engine.Tick{At: at, RunID: engine.NewID(p.Now)})
		}
		started, err := s.store.BackfillSchedule(ctx, p)
		if err != nil {
			return nil, err
		}
		for i, run := range started {
			answer.Ticks = append(answer.Ticks, &kagziv1.BackfilledTick{
				Tick: timestamppb.New(portion[i]), RunId: run.RunID.String(), Existed: run.Existed})
		}
	}
	return answer, nil
}

func (s *Server) backfillOf(ctx context.Context,
	r *kagziv1.BackfillWorkflowScheduleRequest) (p engine.BackfillScheduleParams, err error) {
	p = engine.BackfillScheduleParams{Reason: r.Reason, By: auth.ActorOf(ctx), Now: s.now()}
	if p.Namespace, p.Ref, err = scheduleOf(r); err != nil {
		return p, err
	}
	if err := engine.CheckReason(r.Reason); err != nil {
		return p, err
	}
	if p.From, err = wire.TimeOf("from", r.From); err != nil {
		return p, err
	}
	if p.To, err = wire.TimeOf("to", r.To); err != nil {
		return p, err
	}
	if p.To.IsZero() {
		p.To = p.Now
	}
	switch {
	case p.From.IsZero():
		return p, engine.Invalid("from", "must be set")
	case p.To.Before(p.From):
		return p, engine.Invalid("to", "must not be before from")
	case p.To.Sub(p.From) > engine.MaxDelay:
		return p, engine.Invalid("from", "must be at most 10 years before to")
	case p.To.After(p.Now):
		return p, engine.Invalid("to", "must not be in the future")
	}
	return p, nil
}

// ticksBetween returns the ticks of a range, both ends included.
func ticksBetween(schedule *engine.Schedule, from, to time.Time) ([]time.Time, error) {
	cron, err := parseCron(schedule.CronExpr, schedule.TimeZone)
	if err != nil {
		return nil, err
	}
	ticks, more := cron.Missed(from.Add(-time.Nanosecond), to, engine.MaxBackfill)
	if more > 0 {
		return nil, engine.Invalid("from", "and to hold %d ticks; one call starts at most %d, such as those from %s to %s",
			int64(len(ticks))+more, engine.MaxBackfill, ticks[0].Format(time.RFC3339), to.UTC().Format(time.RFC3339))
	}
	return ticks, nil
}
