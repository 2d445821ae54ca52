package engine

import (
	"context"
	"time"
)

// Schedules holds the operations on schedules, the templates from which ticks start runs.
type Schedules interface {
	// CreateSchedule makes a schedule, and its namespace if that is new, and sends NotifyTimer. A
	// Name that is taken is ErrExists; a disabled namespace is NamespaceDisabled. A known RequestID
	// returns the schedule that it made, no matter what happened to it since. If that schedule was
	// never changed and its name, type, queue, expression, zone or input differ, it is ErrConflict.
	CreateSchedule(ctx context.Context, p ScheduleParams) (Schedule, error)
	// UpdateSchedule replaces all fields of a schedule that clients set: every field of p.Schedule
	// except its counters, LastFiredAt, Buffered and CreatedAt. Broken is taken from p.Schedule
	// too, and PauseReason unless Enabled. The revision grows, and NotifyTimer is sent. p.Schedule.Revision is the
	// revision that the client read; another one is ErrConflict, unless the schedule has exactly these fields
	// already.
	//
	// Buffered ticks: unless Overlap is OverlapBufferOne, the tick is dropped and counts as
	// skipped. Setting Enabled pauses and resumes the schedule. While it is paused, a Buffered tick
	// waits. If no run of the schedule is open, UpdateSchedule starts the tick of a schedule that
	// is enabled, unless the namespace is disabled (UpdateNamespace).
	//
	// NextFireAt: if CronExpr and TimeZone do not change, a NextFireAt equal to p.Read keeps the
	// stored one, and a NextFireAt before p.Now never brings back a tick that was decided since.
	// The ticks in p.Skipped count as skipped. If p.Skipped is not 0 and the stored NextFireAt is
	// no longer p.Read, it is ErrConflict, because another call decided about those ticks.
	UpdateSchedule(ctx context.Context, p ScheduleParams) (Schedule, error)
	// DeleteSchedule deletes the schedule with its records of fired ticks; its runs stay. A
	// schedule that does not exist is ErrNotFound.
	DeleteSchedule(ctx context.Context, p DeleteScheduleParams) error
	// FireSchedule decides about ticks: it starts the runs of p.Ticks in order, counts p.Skipped,
	// and sets NextFireAt. The coordinators of all servers call it. It takes effect only while the
	// schedule and its namespace are enabled, its revision is p.Revision and its NextFireAt is
	// p.Expect; otherwise it answers Stale and nothing changes. So only one of several servers
	// fires a tick, once. A tick that has its record already is passed over.
	//
	// If a run of the schedule is open, OverlapSkip counts a tick as skipped. OverlapBufferOne
	// makes it Buffered, or counts it as skipped if another tick is Buffered. A Buffered tick with
	// no open run starts before p.Ticks, even if these are empty. Broken is stored if it is set,
	// and keeps the schedule out of DueSchedules until it is updated. p.Delay is stored with p.Next.
	FireSchedule(ctx context.Context, p FireScheduleParams) (Fired, error)
	// TriggerSchedule starts one run now, independent of the ticks and of Overlap. A known
	// RequestID returns the same run again. A disabled namespace is NamespaceDisabled.
	TriggerSchedule(ctx context.Context, p TriggerScheduleParams) (Started, error)
	// BackfillSchedule starts the runs of p.Ticks, in order, whether or not they are due, independent
	// of Overlap and of a pause, and returns for each its run. A tick that has its record already
	// returns the run of the record, with Existed, and starts none. NextFireAt does not change: ticks
	// that are decided later are passed over then. A disabled namespace is NamespaceDisabled.
	BackfillSchedule(ctx context.Context, p BackfillScheduleParams) ([]Started, error)
}

// ScheduleParams holds a schedule to create or update.
type ScheduleParams struct {
	Schedule Schedule
	// NamespaceMustExist, for CreateSchedule: see StartRunsParams.
	NamespaceMustExist bool
	Read               time.Time // for UpdateSchedule: the NextFireAt read together with the revision; unset: unknown
	Skipped            int64     // for UpdateSchedule: the number of ticks from Read to Now that the change skips
	Method             string    // for the audit: "PauseWorkflowSchedule", …
	Reason             string
	By                 Actor
	AuditID            ID
	Now                time.Time
}

// DeleteScheduleParams names a schedule, by id or name.
type DeleteScheduleParams struct {
	Namespace string
	Ref       string
	Reason    string
	By        Actor
	AuditID   ID
	Now       time.Time
}

// Tick is a tick to fire, with the id for its run.
type Tick struct {
	At    time.Time
	RunID ID
}

// FireScheduleParams holds what the caller decided about the ticks from Expect up to Next.
type FireScheduleParams struct {
	ScheduleID ID
	Revision   int64
	Expect     time.Time
	Ticks      []Tick
	Skipped    int64
	Next       time.Time     // unset: no more ticks
	Delay      time.Duration // of Next, by the schedule's Jitter
	Broken     string
	Now        time.Time
}

// Fired answers FireSchedule.
type Fired struct {
	Stale   bool
	Runs    int   // started
	Skipped int64 // counted as skipped, p.Skipped included
}

// TriggerScheduleParams names a schedule to trigger. RunID is for the run.
type TriggerScheduleParams struct {
	Namespace string
	Ref       string
	RunID     ID
	RequestID string
	By        Actor
	AuditID   ID
	Now       time.Time
}

// BackfillScheduleParams names a schedule and the ticks to start, at most MaxBackfill.
type BackfillScheduleParams struct {
	Namespace string
	Ref       string
	Ticks     []Tick
	From, To  time.Time // the range that was asked for, for the audit
	Reason    string
	By        Actor
	AuditID   ID
	Now       time.Time
}

// Namespaces holds the operations on namespaces, which separate users from each other.
type Namespaces interface {
	// CreateNamespace makes a namespace that nothing has used yet, and sends NotifyNamespace; with
	// a retention of its own, NotifyAll too. A name that is taken is ErrExists, unless the
	// namespace has exactly these fields, which is no error.
	CreateNamespace(ctx context.Context, p NamespaceParams) (Namespace, error)
	// UpdateNamespace replaces all fields of a namespace that clients set, Enabled included, and
	// sends NotifyNamespace; if it is enabled again or its retention changes, NotifyAll too. When
	// it is enabled again, the Buffered tick of each schedule that is not paused and has no open
	// run starts. p.Namespace.UpdatedAt is the one that the client read; another one is
	// ErrConflict, unless the namespace has exactly these fields already. If it is unset, it is not
	// compared. A namespace that does not exist is ErrNotFound.
	UpdateNamespace(ctx context.Context, p NamespaceParams) (Namespace, error)
	// DeleteNamespace deletes a namespace that holds nothing, with its request ids of deleted runs and
	// its OFFLINE workers; its audit events stay. It sends NotifyNamespace and NotifyAll. One that
	// still holds something (Contents) is NamespaceNotEmpty, one that does not exist ErrNotFound. A
	// start, import, registration or new schedule at the same time takes effect before, so that the
	// namespace is not empty, or after; then NamespaceMustExist refuses it.
	DeleteNamespace(ctx context.Context, p DeleteNamespaceParams) error
	// EmptyNamespace deletes part of what a namespace holds: all its hooks, and at most p.Limit
	// schedules, runs and request ids of deleted runs. Open runs end as TERMINATED before they are deleted, also pinned
	// ones. Once there are no runs, its workers are deleted, keys for this namespace alone are
	// revoked, and other keys lose its name. More says that another call is needed. The first call,
	// without Again, disables the namespace and writes the audit event. A call with Again is
	// ErrConflict if somebody has enabled the namespace since. A namespace that does not exist is
	// ErrNotFound. It may be repeated, also by another server.
	EmptyNamespace(ctx context.Context, p EmptyNamespaceParams) (Emptied, error)
}

// DeleteNamespaceParams names a namespace to delete.
type DeleteNamespaceParams struct {
	Name    string
	Reason  string
	Detail  string // for the audit
	By      Actor
	AuditID ID
	Now     time.Time
}

// EmptyNamespaceParams names a namespace to empty.
type EmptyNamespaceParams struct {
	Name    string
	Again   bool // the deletion has begun
	Limit   int  // how much one call deletes; at least 1
	Reason  string
	By      Actor
	AuditID ID // of the audit event; events about keys get ids made from it
	Now     time.Time
}

// Emptied answers EmptyNamespace.
type Emptied struct {
	Contents // deleted by this call
	More     bool
}

// Contents counts what keeps a namespace from being deleted.
type Contents struct {
	Runs      int64
	Schedules int64
	Hooks     int64
	Workers   int64 // that are not OFFLINE
	Keys      int64 // that are not revoked and name it
}

// MaxContents limits how far Contents counts; one more means that there are more.
const MaxContents = 1000

// NamespaceParams holds a namespace to create or update; the store sets ID and CreatedAt itself.
type NamespaceParams struct {
	Namespace Namespace
	Method    string // for the audit
	Reason    string
	By        Actor
	AuditID   ID
	Now       time.Time
}

// Keys holds the operations on API keys, and the record of refused calls. Every method that changes
// a key sends NotifyKeys, except NoteKeyUse.
type Keys interface {
	// CreateKey makes a key. If another key that is not revoked has the name, it is ErrExists.
	// While there is no key that is not revoked, only the key of an admin for all namespaces can be
	// made, because the first key locks out everyone else: ErrPrecondition. More than MaxKeys keys
	// that are not revoked are ErrPrecondition too. Its namespaces need not exist.
	CreateKey(ctx context.Context, p CreateKeyParams) (APIKey, error)
	// RevokeKey revokes a key for good and returns it; a key that is revoked already does not
	// change. An unknown key is KeyNotFound. While other keys are not revoked, the last key of an
	// admin for all namespaces that never expires cannot be revoked, because nobody could make
	// another: ErrPrecondition. After the last
	// key is revoked, calls need no key again.
	RevokeKey(ctx context.Context, p RevokeKeyParams) (APIKey, error)
	// Keyring returns every key that is not revoked, by ID.
	Keyring(ctx context.Context) ([]APIKey, error)
	// ListKeys returns a page of all keys, newest first, by ID.
	ListKeys(ctx context.Context, p Page) ([]APIKey, PageInfo, error)
	// NoteKeyUse moves LastUsedAt of keys forward, never back. Keys that do not exist are ignored.
	// It sends no notification.
	NoteKeyUse(ctx context.Context, uses []KeyUse) error
	// NoteRefusal writes the audit event of a change that the server refused before it called a
	// method of the store. It may be repeated with the same ID.
	NoteRefusal(ctx context.Context, e AuditEvent) error
}

// CreateKeyParams holds a key to make. The audit event has Subject "key", the key's id, and as
// Detail its role and name.
type CreateKeyParams struct {
	Key     APIKey // with ID and Hash from the caller; CreatedAt is Now
	By      Actor
	AuditID ID
	Now     time.Time
}

// RevokeKeyParams names a key to revoke.
type RevokeKeyParams struct {
	ID      ID
	By      Actor
	AuditID ID
	Now     time.Time
}

// KeyUse records that a key was used.
type KeyUse struct {
	ID ID
	At time.Time
}

// Sessions holds the operations on the sessions of API keys.
type Sessions interface {
	// CreateSession makes a session, which expires as SessionExpiry says. It deletes the oldest
	// sessions of the key, by ID, above MaxKeySessions, and at most MaxSessionsPruned sessions of any
	// key that have expired, earliest first, so that no upkeep is needed for them. A key that was never
	// made, is revoked or has expired is KeyNotFound. It may be repeated with the same ID and Hash and
	// then returns the first answer; another session with the ID is ErrExists.
	CreateSession(ctx context.Context, p CreateSessionParams) (Session, error)
	// GetSession returns a session; SessionNotFound if there is none. One that has expired may still
	// be there.
	GetSession(ctx context.Context, id ID) (Session, error)
	// NoteSessionUse moves UsedAt of sessions forward, never back, and ExpiresAt with it. Sessions
	// that do not exist are ignored. It sends no notification.
	NoteSessionUse(ctx context.Context, uses []KeyUse) error
	// EndSession deletes a session and sends NotifyKeys; if there is none, it does nothing.
	EndSession(ctx context.Context, p EndSessionParams) error
}

// CreateSessionParams holds a session to make; the store sets its times. The audit event has Subject
// "key", the key's id, and as Detail the session's id.
type CreateSessionParams struct {
	Session Session // with ID, KeyID and Hash from the caller
	By      Actor
	AuditID ID
	Now     time.Time
}

// EndSessionParams names a session to end. Its audit event is like that of CreateSession.
type EndSessionParams struct {
	ID      ID
	By      Actor
	AuditID ID
	Now     time.Time
}
