package sqlite

import (
	"context"
	_ "embed"
	"slices"
	"time"

	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/get_circumstances.sql
var getCircumstancesSQL string

// Circumstances is one snapshot.
func (s *Store) ExplainInputs(ctx context.Context, namespace string, run engine.ID, now time.Time) (engine.Circumstances, error) {
	return read(ctx, s, "ExplainInputs", func(r session) (c engine.Circumstances, err error) {
		c.Run, err = r.oneRun(engine.RunNotFound(run), &getRunSQL, text("namespace", namespace), idArg("run_id", run))
		if err != nil {
			return c, err
		}
		c.Run.Input, c.Run.Output = engine.Payload{}, engine.Payload{}
		if c.Steps, err = r.steps(&listWaitingSQL, idArg("run_id", run)); err != nil {
			return c, err
		}
		if c.Workers, err = r.working(namespace); err != nil {
			return c, err
		}
		c.Workers = slices.DeleteFunc(c.Workers, func(w engine.Worker) bool { return !slices.Contains(w.Queues, c.Run.Queue) })
		err = r.query(&getCircumstancesSQL, func(r *row) error {
			c.NamespaceEnabled, c.RunningInQueue, c.RunningOfType = r.flag(), int(r.num()), int(r.num())
			c.RunningOfKey, c.AheadInLine = int(r.num()), int(r.num())
			return nil
		}, idArg("run_id", run), instant("starved_since", engine.Micros(now.Add(-engine.StarvationAfter))))
		return c, err
	})
}
