package engine

import (
	"slices"
	"strings"
	"time"
)

// KeyRole says what a key allows. The numbers are those of the wire.
type KeyRole uint8

const (
	RoleAdmin    KeyRole = 1 // everything, keys and namespaces included
	RoleOperator KeyRole = 2 // read and change the runs, workers and schedules of its namespaces
	RoleClient   KeyRole = 3 // start, signal and read runs of its namespaces
	RoleWorker   KeyRole = 4 // work on the queues and types that it names
	RoleViewer   KeyRole = 5 // read, payloads left out
)

// String returns the role as people write it: "admin".
func (r KeyRole) String() string {
	switch r {
	case RoleAdmin:
		return "admin"
	case RoleOperator:
		return "operator"
	case RoleClient:
		return "client"
	case RoleWorker:
		return "worker"
	case RoleViewer:
		return "viewer"
	}
	return "unknown"
}

// APIKey allows callers that have its secret to use the API as its role says. The secret itself is
// not stored.
type APIKey struct {
	ID         ID
	Name       string // unique among keys that are not revoked
	Role       KeyRole
	Namespaces []string // sorted; empty: all, for admins only
	Queues     []string // for RoleWorker: globs of queues; empty: all of its namespaces
	Types      []string // for RoleWorker: globs of workflow types; empty: all
	WorkerIDs  []string // for RoleWorker: globs of the ids that its workers may have; empty: any
	Hash       [32]byte // SHA-256 of the secret, which holds 256 random bits and so needs nothing slower
	CreatedAt  time.Time
	ExpiresAt  time.Time // not valid from then on; unset: never
	LastUsedAt time.Time // approximate, see NoteKeyUse; unset: never used
	RevokedAt  time.Time // unset: not revoked
}

// ValidAt says whether the key is neither revoked nor expired at the time now.
func (k *APIKey) ValidAt(now time.Time) bool {
	return k.RevokedAt.IsZero() && (k.ExpiresAt.IsZero() || now.Before(k.ExpiresAt))
}

// Reaches says whether the key is for the namespace.
func (k *APIKey) Reaches(namespace string) bool {
	return len(k.Namespaces) == 0 && k.Role == RoleAdmin || slices.Contains(k.Namespaces, namespace)
}

// ServesQueue says whether a worker with this key may take runs of the queue.
func (k *APIKey) ServesQueue(name string) bool { return matchesAny(k.Queues, name) }

// ServesType says whether a worker with this key may take runs of the workflow type.
func (k *APIKey) ServesType(name string) bool { return matchesAny(k.Types, name) }

// ServesAs says whether a worker with this key may have the id.
func (k *APIKey) ServesAs(worker string) bool { return matchesAny(k.WorkerIDs, worker) }

func matchesAny(globs []string, name string) bool {
	return len(globs) == 0 || slices.ContainsFunc(globs, func(glob string) bool { return MatchesGlob(glob, name) })
}

// MatchesGlob says whether name matches pattern, in which * stands for any text, including none.
// Its cost grows at most with the product of both lengths.
func MatchesGlob(pattern, name string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	name, found := strings.CutPrefix(name, head)
	if !found {
		return false
	}
	for {
		part, next, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(name, part)
		}
		at := strings.Index(name, part)
		if at < 0 {
			return false
		}
		name, rest = name[at+len(part):], next
	}
}

// KeyNotFound returns the error for a key that was never made.
func KeyNotFound(id ID) error {
	return &Error{Kind: KindNotFound, Subject: "key", SubjectID: id.String(), Message: "no key " + id.String()}
}

// CheckKey returns an error that names the request's field if a key exceeds a limit or is
// inconsistent. CreatedAt must be set and Namespaces sorted.
func CheckKey(k *APIKey) error {
	checks := []error{
		CheckName("key.name", k.Name),
		checkRole(k.Role),
		checkKeyNamespaces(k),
		checkGlobs("key.task_queues", k.Role, k.Queues, MaxName, nameByte, ". _ : / - *"),
		checkGlobs("key.workflow_types", k.Role, k.Types, MaxName, nameByte, ". _ : / - *"),
		checkGlobs("key.worker_ids", k.Role, k.WorkerIDs, MaxWorkerID, workerIDByte, "_ - *"),
	}
	if err := firstError(checks); err != nil {
		return err
	}
	if !k.ExpiresAt.IsZero() && !k.ExpiresAt.After(k.CreatedAt) {
		return Invalid("key.expires_at", "must be in the future, got %s",
			k.ExpiresAt.UTC().Format("2006-01-02T15:04:05Z07:00"))
	}
	return nil
}

func checkRole(r KeyRole) error {
	if r < RoleAdmin || r > RoleViewer {
		return Invalid("key.role", "must be admin, operator, client, worker or viewer, got the value %d", r)
	}
	return nil
}

func checkKeyNamespaces(k *APIKey) error {
	const field = "key.namespaces"
	switch {
	case len(k.Namespaces) == 0 && k.Role != RoleAdmin:
		return Invalid(field, "must name at least one namespace: only an admin's key may be for all")
	case len(k.Namespaces) > MaxKeyNamespaces:
		return Invalid(field, "has %d entries, at most %d are allowed", len(k.Namespaces), MaxKeyNamespaces)
	}
	for i, name := range k.Namespaces {
		if err := CheckNamespace(field, name); err != nil {
			return err
		}
		if i > 0 && k.Namespaces[i-1] >= name {
			return Invalid(field, "must be sorted and name each namespace once (found %q after %q)", name,
				k.Namespaces[i-1])
		}
	}
	return nil
}

// checkGlobs returns an error if a key of another role than RoleWorker has globs, or if no name can
// match one. A glob is a name in which * stands for any text. most and allowed are the limits of the
// name, and signs names its characters beside letters and digits.
func checkGlobs(field string, role KeyRole, globs []string, most int, allowed func(byte) bool, signs string) error {
	switch {
	case len(globs) > 0 && role != RoleWorker:
		return Invalid(field, "must be empty: only a worker's key is for some of them")
	case len(globs) > MaxKeyGlobs:
		return Invalid(field, "has %d entries, at most %d are allowed", len(globs), MaxKeyGlobs)
	}
	for _, glob := range globs {
		if glob == "" || len(glob) > most {
			return Invalid(field, "must have entries of 1 to %d bytes, got one of %d", most, len(glob))
		}
		if i := slices.IndexFunc([]byte(glob), func(c byte) bool { return !allowed(c) && c != '*' }); i >= 0 {
			return Invalid(field, "may hold only letters, digits and %s (found %q)", signs, firstRune(glob[i:]))
		}
	}
	return nil
}
