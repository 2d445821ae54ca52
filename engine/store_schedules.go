package engine

import (
	"context"
	"time"
)

// Schedules is the templates of runs that time fires.
type Schedules interface {
	// CreateSchedule makes a schedule, its namespace too if that is new, and notifications
	// NotifyTimer. A Name that is taken is ErrExists; a RequestID that is known answers the
	// schedule that it made (whatever has become of it), or ErrConflict when that was never changed
	// and has another name, type, queue, expression, zone or input. A disabled namespace is
	// NamespaceDisabled.
	CreateSchedule(ctx context.Context, p ScheduleParams) (Schedule, error)
	// UpdateSchedule replaces all of a schedule that a person decides about: every field of
	// p.Schedule but its counters, LastFiredAt, Buffered (which it drops and counts as skipped
	// unless Overlap is OverlapBufferOne), CreatedAt. p.Schedule.Revision is the one that was read;
	// another one is ErrConflict, unless the schedule stands exactly so already. The revision
	// grows, Broken is p.Schedule's, and NotifyTimer. Pausing and resuming are this, with Enabled:
	// a tick that is Buffered waits on while the schedule is paused, and starts here if no run of
	// it is open then, unless the namespace is disabled (UpdateNamespace). Where CronExpr and
	// TimeZone stay, a NextFireAt that is p.Read changes nothing about when the schedule is looked
	// at next, and one that is over at p.Now brings back no tick that was decided about since.
	// p.Skipped counts as skipped; with some of them, a NextFireAt that is no longer p.Read is
	// ErrConflict, for others have decided about those ticks.
	UpdateSchedule(ctx context.Context, p ScheduleParams) (Schedule, error)
	// DeleteSchedule deletes the schedule with its records of fired ticks; its runs stay. Gone already is ErrNotFound.
	DeleteSchedule(ctx context.Context, p DeleteScheduleParams) error
	// FireSchedule decides about ticks: it starts the runs of p.Ticks, in their order, counts
	// p.Skipped, and sets NextFireAt, all only while the schedule is enabled, has p.Revision and
	// its NextFireAt is p.Expect; otherwise it answers Stale and nothing changes, so that of
	// several servers one fires a tick, once. No two ticks of a schedule are the same: a tick that
	// has its record already is passed over.
	//
	// Of each tick, with a run of the schedule open: OverlapSkip counts it as skipped;
	// OverlapBufferOne makes it Buffered, or counts it as skipped when one is. One that is Buffered
	// with no run open starts before p.Ticks, also if there are none. Broken, when set, is kept and
	// takes the schedule out of DueSchedules until it is updated.
	FireSchedule(ctx context.Context, p FireScheduleParams) (Fired, error)
	// TriggerSchedule starts one run now, beside the ticks and whatever Overlap says. A known
	// RequestID answers the same run again. A disabled namespace is NamespaceDisabled.
	TriggerSchedule(ctx context.Context, p TriggerScheduleParams) (Started, error)
}

// ScheduleParams is a schedule as a person wants it.
type ScheduleParams struct {
	Schedule Schedule
	Read     time.Time // of UpdateSchedule: the NextFireAt that was read with the revision; unset: not known
	Skipped  int64     // of UpdateSchedule: the ticks from Read up to Now that the change gives up
	Method   string    // for the audit: "PauseWorkflowSchedule", …
	Reason   string
	By       Actor
	AuditID  ID
	Now      time.Time
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

// Tick is one that is to fire, and the id of its run.
type Tick struct {
	At    time.Time
	RunID ID
}

// FireScheduleParams is what was decided about the ticks from Expect up to Next.
type FireScheduleParams struct {
	ScheduleID ID
	Revision   int64
	Expect     time.Time
	Ticks      []Tick
	Skipped    int64
	Next       time.Time // unset: no tick comes any more
	Broken     string
	Now        time.Time
}

// Fired answers FireSchedule.
type Fired struct {
	Stale   bool
	Runs    int   // started
	Skipped int64 // counted as skipped, p.Skipped included
}

// TriggerScheduleParams fires by hand. RunID is the run's.
type TriggerScheduleParams struct {
	Namespace string
	Ref       string
	RunID     ID
	RequestID string
	By        Actor
	AuditID   ID
	Now       time.Time
}

// Namespaces is the boundaries between users.
type Namespaces interface {
	// CreateNamespace makes one that nothing has used yet, and notifications NotifyNamespace; taken
	// is ErrExists, unless it stands exactly so, which is fine again. NotifyAll, too, when it has a
	// retention of its own.
	CreateNamespace(ctx context.Context, p NamespaceParams) (Namespace, error)
	// UpdateNamespace replaces all of a namespace that a person decides about, Enabled included,
	// and notifications NotifyNamespace; NotifyAll, too, when it is enabled again or has another
	// retention. When it is enabled again, the tick of each schedule that is Buffered with no run
	// of it open starts, unless the schedule is paused. p.Namespace.UpdatedAt is that of what was
	// read; another one is ErrConflict, unless the namespace stands exactly so already. Unset:
	// whatever stands is replaced. ErrNotFound.
	UpdateNamespace(ctx context.Context, p NamespaceParams) (Namespace, error)
}

// NamespaceParams is a namespace as a person wants it; ID and CreatedAt are the store's own.
type NamespaceParams struct {
	Namespace Namespace
	Method    string // for the audit
	Reason    string
	By        Actor
	AuditID   ID
	Now       time.Time
}

// Keys are the API keys, and who was refused. Every verb that changes one sends NotifyKeys.
type Keys interface {
	// CreateKey makes a key. A name that a key has which is not revoked is ErrExists. While there
	// is no key at all, revoked ones aside, only an admin's for all namespaces can be made, because
	// the first one locks everybody else out: ErrPrecondition. So is a key too many (MaxKeys that
	// are not revoked). Names of namespaces need not be in use.
	CreateKey(ctx context.Context, p CreateKeyParams) (APIKey, error)
	// RevokeKey makes a key worthless for good; one that is revoked stays as it is and is returned.
	// KeyNotFound. The last key that is neither revoked nor ever expires of an admin for all
	// namespaces is ErrPrecondition as long as other keys are not revoked: nobody could make
	// another. When the last key of all is revoked the database is without keys again.
	RevokeKey(ctx context.Context, p RevokeKeyParams) (APIKey, error)
	// Keyring is every key that is not revoked, by ID.
	Keyring(ctx context.Context) ([]APIKey, error)
	// ListKeys is all keys, newest first, by ID.
	ListKeys(ctx context.Context, p Page) ([]APIKey, PageInfo, error)
	// NoteKeyUse moves LastUsedAt of keys forward, never back; keys that are not there are left
	// out. It notifies nothing.
	NoteKeyUse(ctx context.Context, uses []KeyUse) error
	// NoteRefusal writes an audit event that no verb writes: of a change that was refused before
	// any verb of this store was asked. It may be repeated with the same ID.
	NoteRefusal(ctx context.Context, e AuditEvent) error
}

// CreateKeyParams says what to make. The audit event has Subject "key", the key's id, and as Detail its role and name.
type CreateKeyParams struct {
	Key     APIKey // with ID and Hash, which the caller minted; CreatedAt is Now
	By      Actor
	AuditID ID
	Now     time.Time
}

// RevokeKeyParams names a key.
type RevokeKeyParams struct {
	ID      ID
	By      Actor
	AuditID ID
	Now     time.Time
}

// KeyUse is that a key was used.
type KeyUse struct {
	ID ID
	At time.Time
}
