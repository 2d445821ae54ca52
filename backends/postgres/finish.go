package postgres

import (
	"context"
	_ "embed"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

// finishCall is one call of CompleteRun.
type finishCall struct{ p *engine.CompleteRunParams }

// CompleteRun is one statement for a run whose end concerns nobody else, as nearly every one's does. Only when that did not apply does
// the store logic look closer.
func (s *Store) CompleteRun(_ context.Context, p engine.CompleteRunParams) (engine.Completed, error) {
	if err := s.enter(); err != nil {
		return engine.Completed{}, err
	}
	defer s.leave()
	p.Now = engine.Micros(p.Now)
	c := &call{run: p.Lease.RunID, turn: p.Ticket, finish: &finishCall{&p}, size: p.Output.Size(), alone: p.ContinueAs != nil}
	return together(s, c, "complete a run", func() engine.Completed { return engine.Completed{Status: engine.RunCompleted} },
		func(t *tx) (engine.Completed, error) { return storelogic.CompleteRun(t, p) })
}

//go:embed sql/complete_run.sql
var completeRunText string

var completeRunSQL = hot(completeRunText)

// queueFinishes adds the group's ends to the batch. One that comes after results of the group happens only if the last of these did,
// and so all of them.
func queueFinishes(batch *pgx.Batch, answers *groupAnswers, group []*call) {
	var runs, tokens, behind [][16]byte
	var namespaces, metas []string
	var outputs [][]byte
	var sizes, nows []int64
	byRun := map[engine.ID]*call{}
	results := map[engine.ID]engine.ID{}
	for _, c := range group {
		if c.step != nil {
			results[c.run] = c.step.p.ID
		}
		if c.finish == nil {
			continue
		}
		p := c.finish.p
		byRun[c.run] = c
		runs, tokens, namespaces = append(runs, p.Lease.RunID), append(tokens, p.Lease.Token), append(namespaces, p.Lease.Namespace)
		outputs, metas = append(outputs, dataOrNull(p.Output.Data)), append(metas, mapText(p.Output.Metadata))
		sizes, nows = append(sizes, int64(p.Output.Size())), append(nows, micros(p.Now))
		behind = append(behind, results[c.run])
	}
	if len(runs) == 0 {
		return
	}
	batch.Queue(completeRunSQL.text, completeRunSQL.bind(args{
		"run_ids": runs, "tokens": tokens, "namespaces": namespaces, "outputs": outputs, "output_metas": metas,
		"sizes": sizes, "now": nows, "behind": behind, "max_bytes": int64(engine.MaxRunBytes),
	})...).Query(func(rows pgx.Rows) error {
		var id engine.ID
		var namespace, queue string
		_, err := pgx.ForEachRow(rows, []any{idOf(&id), &namespace, &queue}, func() error {
			c := byRun[id]
			answers.settle(c)
			answers.rings = append(answers.rings, engine.Notification{Kind: engine.NotifySlot, Namespace: namespace, Name: queue},
				engine.Notification{Kind: engine.NotifyRun, ID: id},
				engine.Notification{Kind: engine.NotifyEnd, ID: id, Ending: &engine.Ending{Namespace: namespace, Status: engine.RunCompleted,
					Output: c.finish.p.Output, FinishedAt: c.finish.p.Now}})
			return nil
		})
		return err
	})
}
