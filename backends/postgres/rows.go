package postgres

import (
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/kagzi/kagzi/engine"
)

// The types below are places for columns: pgx scans into them without reflection, and null becomes the zero value.

type idColumn engine.ID

func (c *idColumn) ScanUUID(v pgtype.UUID) error {
	*c = idColumn(v.Bytes)
	return nil
}

type tokenColumn engine.Token

func (c *tokenColumn) ScanUUID(v pgtype.UUID) error {
	*c = tokenColumn(v.Bytes)
	return nil
}

type timeColumn time.Time

func (c *timeColumn) ScanInt64(v pgtype.Int8) error {
	*c = timeColumn{}
	if v.Valid {
		*c = timeColumn(time.UnixMicro(v.Int64).UTC())
	}
	return nil
}

type spanColumn time.Duration

func (c *spanColumn) ScanInt64(v pgtype.Int8) error {
	*c = spanColumn(time.Duration(v.Int64) * time.Microsecond)
	return nil
}

// numberColumn is a status, a kind or a reason.
type numberColumn[T ~uint8] struct{ to *T }

func (c numberColumn[T]) ScanInt64(v pgtype.Int8) error {
	*c.to = T(v.Int64)
	return nil
}

// jsonColumn is text that holds JSON, or nothing.
type jsonColumn[T any] struct{ to *T }

func (c jsonColumn[T]) ScanText(v pgtype.Text) error {
	var zero T
	*c.to = zero
	if v.String == "" {
		return nil
	}
	return json.Unmarshal([]byte(v.String), c.to)
}

func idOf(id *engine.ID) *idColumn            { return (*idColumn)(id) }
func tokenOf(t *engine.Token) *tokenColumn    { return (*tokenColumn)(t) }
func timeOf(t *time.Time) *timeColumn         { return (*timeColumn)(t) }
func spanOf(d *time.Duration) *spanColumn     { return (*spanColumn)(d) }
func numberOf[T ~uint8](n *T) numberColumn[T] { return numberColumn[T]{n} }
func jsonOf[T any](to *T) jsonColumn[T]       { return jsonColumn[T]{to} }

// runPlaces is where the run columns of claim.sql, get_run.sql and list_runs.sql go, in their order.
func runPlaces(r *engine.Run) []any {
	return []any{
		idOf(&r.ID), &r.Namespace, &r.ExternalID, &r.RequestID, &r.Queue, &r.Type, &r.Version,
		numberOf(&r.Status), &r.Priority, &r.Attempts, &r.Failures, &r.LeaseLosses, &r.Steps, &r.Bytes, jsonOf(&r.Error),
		timeOf(&r.CreatedAt), timeOf(&r.AvailableAt), timeOf(&r.StartedAt), timeOf(&r.FinishedAt), timeOf(&r.DeadlineAt),
		&r.WorkerID, &r.WaitingFor, jsonOf(&r.RetryPolicy),
		spanOf(&r.Timeouts.StartToClose), spanOf(&r.Timeouts.Heartbeat), spanOf(&r.Timeouts.Execution),
		jsonOf(&r.Tags), jsonOf(&r.Requirements), &r.OnFailureWorkflow, &r.OnFailureQueue,
		&r.ConcurrencyKey, &r.ConcurrencyLimit, idOf(&r.ParentRunID), idOf(&r.ParentStepID), &r.Traceparent,
	}
}

func payloadPlaces(p *engine.Payload) []any {
	return []any{&p.Data, jsonOf(&p.Metadata)}
}

// stepPlaces is where the columns of the statements that read steps go, in their order.
func stepPlaces(s *engine.Step) []any {
	return []any{
		idOf(&s.ID), idOf(&s.RunID), &s.Name, numberOf(&s.Kind), numberOf(&s.Status), &s.Attempt, &s.Failures, &s.Latest,
		&s.Sequence, &s.Input.Data, jsonOf(&s.Input.Metadata), &s.Output.Data, jsonOf(&s.Output.Metadata), jsonOf(&s.Error),
		tokenOf(&s.Token), &s.WorkerID, timeOf(&s.CreatedAt), timeOf(&s.StartedAt), timeOf(&s.FinishedAt),
		timeOf(&s.TimeoutAt), timeOf(&s.RetryAt), timeOf(&s.WakeAt), spanOf(&s.Duration), jsonOf(&s.RetryPolicy),
	}
}

// workerPlaces is where the columns of the statements that read workers go, in their order.
func workerPlaces(w *engine.Worker) []any {
	return []any{
		&w.ID, &w.Namespace, &w.InstanceID, numberOf(&w.Status), numberOf(&w.Reason), jsonOf(&w.Queues), jsonOf(&w.Types),
		jsonOf(&w.Labels), jsonOf(&w.Capabilities), &w.Hostname, &w.PID, &w.Version, &w.Platform, &w.MaxConcurrent,
		&w.QueueLimit, jsonOf(&w.TypeLimits), &w.Active, &w.Completed, &w.Failed, jsonOf(&w.Stats),
		timeOf(&w.RegisteredAt), timeOf(&w.LastHeartbeatAt), timeOf(&w.DeregisteredAt),
	}
}

// micros is a time as it is stored.
func micros(t time.Time) int64 { return t.UnixMicro() }

// microsOrNull is the same for a column that may be null.
func microsOrNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// microsOrZero is the same for arrays, whose statements make null of it.
func microsOrZero(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func idOrNull(id engine.ID) any {
	if id.IsZero() {
		return nil
	}
	return [16]byte(id)
}

// idArray is ids as a parameter.
func idArray(ids []engine.ID) [][16]byte {
	array := make([][16]byte, len(ids))
	for i, id := range ids {
		array[i] = id
	}
	return array
}

// dataOrNull keeps no bytes as null: nil and empty are the same.
func dataOrNull(data []byte) []byte {
	if len(data) == 0 {
		return nil
	}
	return data
}

// mapText is a map as compact JSON with sorted keys, nothing for none.
func mapText[V any](m map[string]V) string {
	if len(m) == 0 {
		return ""
	}
	return jsonText(m)
}

// pointerText is what p points to as compact JSON, nothing for nil.
func pointerText[T any](p *T) string {
	if p == nil {
		return ""
	}
	return jsonText(p)
}

// jsonText writes maps of text, policies and failures, all of which JSON can hold.
func jsonText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic("json of a plain value: " + err.Error())
	}
	return string(text)
}
