package postgres

import (
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/kagzi/kagzi/backends/internal/storekit"
	"github.com/kagzi/kagzi/engine"
)

// The types below are scan targets for columns: pgx scans into them without reflection, and null
// becomes the zero value.

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

// laterColumn is a time that takes the place of another where it is set.
type laterColumn time.Time

func (c *laterColumn) ScanInt64(v pgtype.Int8) error {
	if v.Valid {
		*c = laterColumn(time.UnixMicro(v.Int64).UTC())
	}
	return nil
}

type spanColumn time.Duration

func (c *spanColumn) ScanInt64(v pgtype.Int8) error {
	*c = spanColumn(time.Duration(v.Int64) * time.Microsecond)
	return nil
}

// numberColumn scans a status, a kind or a reason.
type numberColumn[T ~uint8] struct{ to *T }

func (c numberColumn[T]) ScanInt64(v pgtype.Int8) error {
	*c.to = T(v.Int64)
	return nil
}

// jsonColumn scans text that holds JSON; empty text leaves the value unchanged.
type jsonColumn[T any] struct{ to *T }

func (c jsonColumn[T]) ScanText(v pgtype.Text) error {
	var zero T
	*c.to = zero
	if v.String == "" {
		return nil
	}
	if m, ok := any(c.to).(*map[string]string); ok {
		var err error
		*m, err = storekit.ReadMapText(v.String)
		return err
	}
	return json.Unmarshal([]byte(v.String), c.to)
}

// detailColumn scans what an attempt is about, whose kind was scanned before.
type detailColumn struct{ of *engine.Step }

func (c detailColumn) ScanText(v pgtype.Text) error {
	*storekit.DetailOf(c.of) = v.String
	return nil
}

// keepColumn scans how long runs are kept by status, in microseconds.
type keepColumn struct {
	to *map[engine.RunStatus]time.Duration
}

func (c keepColumn) ScanText(v pgtype.Text) error {
	*c.to = nil
	if v.String == "" {
		return nil
	}
	var spans map[engine.RunStatus]int64
	if err := json.Unmarshal([]byte(v.String), &spans); err != nil {
		return err
	}
	*c.to = make(map[engine.RunStatus]time.Duration, len(spans))
	for status, us := range spans {
		(*c.to)[status] = time.Duration(us) * time.Microsecond
	}
	return nil
}

func idOf(id *engine.ID) *idColumn            { return (*idColumn)(id) }
func tokenOf(t *engine.Token) *tokenColumn    { return (*tokenColumn)(t) }
func timeOf(t *time.Time) *timeColumn         { return (*timeColumn)(t) }
func spanOf(d *time.Duration) *spanColumn     { return (*spanColumn)(d) }
func numberOf[T ~uint8](n *T) numberColumn[T] { return numberColumn[T]{n} }
func jsonOf[T any](to *T) jsonColumn[T]       { return jsonColumn[T]{to} }

func payloadPlaces(p *engine.Payload) []any {
	return []any{&p.Data, jsonOf(&p.Metadata)}
}

// stepPlaces returns the scan targets of statements that read steps.
func stepPlaces(s *engine.Step) []any {
	return []any{
		idOf(&s.ID), idOf(&s.RunID), &s.Name, numberOf(&s.Kind), numberOf(&s.Status), &s.Attempt,
		&s.Failures, &s.Latest,
		&s.Sequence, &s.Input.Data, jsonOf(&s.Input.Metadata), &s.Output.Data, jsonOf(&s.Output.Metadata),
		jsonOf(&s.Error),
		tokenOf(&s.Token), &s.WorkerID, timeOf(&s.CreatedAt), timeOf(&s.StartedAt), timeOf(&s.FinishedAt),
		timeOf(&s.TimeoutAt), timeOf(&s.RetryAt), timeOf(&s.WakeAt), spanOf(&s.Duration), jsonOf(&s.RetryPolicy),
		detailColumn{s}, &s.TimedOut, idOf(&s.ChildRunID), &s.Awaited, &s.OverriddenBy, &s.OverrideReason,
		&s.Settled, &s.Branch, &s.BegunIn,
	}
}

// signalPlaces returns the scan targets of statements that read signals.
func signalPlaces(s *engine.Signal) []any {
	return append([]any{idOf(&s.RunID), &s.Sequence, &s.Name, &s.SignalID, timeOf(&s.ReceivedAt), &s.StepName},
		payloadPlaces(&s.Payload)...)
}

// schedulePlaces returns the scan targets of statements that read schedules, without the input.
func schedulePlaces(s *engine.Schedule) []any {
	return []any{
		idOf(&s.ID), &s.Namespace, &s.Name, &s.RequestID, &s.CronExpr, &s.TimeZone, &s.Enabled, &s.Queue, &s.Type,
		&s.Version,
		jsonOf(&s.RetryPolicy), spanOf(&s.Timeouts.StartToClose), spanOf(&s.Timeouts.Heartbeat),
		spanOf(&s.Timeouts.Execution),
		&s.OnFailureWorkflow, &s.OnFailureQueue, jsonOf(&s.Tags), &s.MaxCatchup, numberOf(&s.Overlap),
		timeOf(&s.CreatedAt), timeOf(&s.UpdatedAt), timeOf(&s.NextFireAt), timeOf(&s.LastFiredAt),
		timeOf(&s.Buffered), &s.Broken,
		&s.Fired, &s.Completed, &s.Failed, &s.Skipped, &s.Revision,
		&s.PauseReason, spanOf(&s.Jitter), spanOf(&s.Delay),
		&s.ConcurrencyKey, &s.ConcurrencyLimit, numberOf(&s.ConcurrencyScope), jsonOf(&s.RunRetryPolicy),
	}
}

// namespacePlaces returns the scan targets of statements that read namespaces.
func namespacePlaces(n *engine.Namespace) []any {
	return []any{
		&n.Name, idOf(&n.ID), &n.DisplayName, &n.Description, &n.Enabled, timeOf(&n.CreatedAt), timeOf(&n.UpdatedAt),
		spanOf(&n.Retention), keepColumn{&n.Keep}, &n.FailureQueue,
	}
}

// auditPlaces returns the scan targets of statements that read audit events.
func auditPlaces(e *engine.AuditEvent) []any {
	return []any{
		idOf(&e.ID), timeOf(&e.At), &e.Actor.Name, &e.Actor.Peer, &e.Method, &e.Namespace, &e.Subject, &e.SubjectID,
		&e.Outcome,
		&e.Reason, &e.Detail,
	}
}

// workerPlaces returns the scan targets of statements that read workers.
func workerPlaces(w *engine.Worker) []any {
	return []any{
		&w.ID, &w.Namespace, &w.InstanceID, numberOf(&w.Status), numberOf(&w.Reason), jsonOf(&w.Queues),
		jsonOf(&w.Types),
		jsonOf(&w.Labels), jsonOf(&w.Capabilities), &w.Hostname, &w.PID, &w.Version, &w.Platform, &w.MaxConcurrent,
		&w.QueueLimit, jsonOf(&w.TypeLimits), &w.Active, &w.Completed, &w.Failed, jsonOf(&w.Stats),
		timeOf(&w.RegisteredAt), timeOf(&w.LastHeartbeatAt), timeOf(&w.DeregisteredAt), &w.PausesRuns, &w.BuildID,
	}
}

// Arguments of statements, as the columns hold them.

// micros encodes a time.
func micros(t time.Time) int64 { return t.UnixMicro() }

// microsOrNull encodes a time for a column that may be null.
func microsOrNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// microsOrZero encodes a time for arrays, whose statements turn 0 into null.
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

// idArray encodes ids as an array.
func idArray(ids []engine.ID) [][16]byte {
	array := make([][16]byte, len(ids))
	for i, id := range ids {
		array[i] = id
	}
	return array
}

// dataOrNull encodes empty data as null, because nil and empty are the same.
func dataOrNull(data []byte) []byte {
	if len(data) == 0 {
		return nil
	}
	return data
}

// keepText encodes how long runs are kept by status, in microseconds.
func keepText(keep map[engine.RunStatus]time.Duration) string {
	spans := make(map[engine.RunStatus]int64, len(keep))
	for status, d := range keep {
		spans[status] = d.Microseconds()
	}
	return mapText(spans)
}

// mapText encodes a map as compact JSON with sorted keys, an empty one as "".
func mapText[K comparable, V any](m map[K]V) string {
	if texts, ok := any(m).(map[string]string); ok {
		return storekit.MapText(texts)
	}
	if len(m) == 0 {
		return ""
	}
	return jsonText(m)
}

// pointerText encodes a value as compact JSON, nil as "".
func pointerText[T any](p *T) string {
	if p == nil {
		return ""
	}
	return jsonText(p)
}

// jsonText encodes maps of text, policies and failures, which JSON can always hold.
func jsonText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic("json of a plain value: " + err.Error())
	}
	return string(text)
}
