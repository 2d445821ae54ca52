package engine

import (
	"slices"
	"time"
)

// Limits of hooks.
const (
	MaxHooks      = 1000 // of a namespace
	MaxHookName   = 63   // bytes, of [A-Za-z0-9._:/-]
	MinHookSecret = 16   // bytes, of printable ASCII without spaces
	MaxHookSecret = 255

	// MaxHookOverlap limits how long the secret before a rotation stays valid. DefaultHookOverlap is
	// that of a rotation which sets none.
	MaxHookOverlap     = 30 * 24 * time.Hour
	DefaultHookOverlap = 24 * time.Hour
)

// HookPath begins the path of every hook's URL on the HTTP port; the hook's id follows.
const HookPath = "/hooks/"

// HookScheme says how a sender proves that it knows a hook's secret. The numbers are those of the
// wire.
type HookScheme uint8

const (
	HookGitHub HookScheme = 1 // X-Hub-Signature-256: sha256=HMAC of the body
	HookStripe HookScheme = 2 // Stripe-Signature: t=TIME,v1=HMAC of TIME.body
	HookPlain  HookScheme = 3 // the secret itself, in a header: for senders that cannot sign
)

// String returns the scheme as people write it: "github".
func (s HookScheme) String() string {
	switch s {
	case HookGitHub:
		return "github"
	case HookStripe:
		return "stripe"
	case HookPlain:
		return "plain"
	}
	return "unknown"
}

// Hook starts a run of a type for each delivery of a sender that knows its secret. The secret is
// stored as it is, because an HMAC can be checked only with the secret itself.
type Hook struct {
	ID        ID // in the hook's URL
	Namespace string
	Name      string // unique in the namespace
	Queue     string // of its runs
	Type      string
	Scheme    HookScheme
	Secret    string
	OldSecret string    // valid until OldUntil; empty: the secret was never rotated
	OldUntil  time.Time // unset without OldSecret
	CreatedAt time.Time
	RotatedAt time.Time // unset: never
}

// Secrets returns the secrets that are valid at the time now, the newest first.
func (h *Hook) Secrets(now time.Time) []string {
	if now.Before(h.OldUntil) {
		return []string{h.Secret, h.OldSecret}
	}
	return []string{h.Secret}
}

// CheckHookName returns an error unless name is 1 to MaxHookName bytes of [A-Za-z0-9._:/-].
func CheckHookName(field, name string) error {
	if len(name) > MaxHookName {
		return Invalid(field, "is %d bytes long, at most %d are allowed", len(name), MaxHookName)
	}
	return CheckName(field, name)
}

// CheckHook returns an error that names the request's field if a hook exceeds a limit.
func CheckHook(h *Hook) error {
	return firstError([]error{
		CheckNamespace("namespace", h.Namespace),
		CheckHookName("name", h.Name),
		CheckName("task_queue", h.Queue),
		CheckName("workflow_type", h.Type),
		checkHookScheme(h.Scheme),
		CheckHookSecret("secret", h.Secret),
	})
}

func checkHookScheme(s HookScheme) error {
	if s < HookGitHub || s > HookPlain {
		return Invalid("signature", "must be github, stripe or plain, got the value %d", s)
	}
	return nil
}

// CheckHookSecret returns an error unless secret can be a hook's. The error never holds it.
func CheckHookSecret(field, secret string) error {
	if len(secret) < MinHookSecret || len(secret) > MaxHookSecret {
		return Invalid(field, "must have %d to %d bytes, got %d", MinHookSecret, MaxHookSecret, len(secret))
	}
	if slices.ContainsFunc([]byte(secret), func(c byte) bool { return c <= ' ' || c > '~' }) {
		return Invalid(field, "may hold only printable ASCII characters without spaces")
	}
	return nil
}

// CheckHookOverlap returns an error unless overlap is between 0 and MaxHookOverlap.
func CheckHookOverlap(field string, overlap time.Duration) error {
	if overlap < 0 || overlap > MaxHookOverlap {
		return Invalid(field, "must be between 0 and 30 days, got %s", overlap)
	}
	return nil
}

// HookNotFound returns the error for a hook that does not exist, by its name or id.
func HookNotFound(ref string) error {
	return &Error{Kind: KindNotFound, Subject: "hook", SubjectID: ref, Message: "no hook " + ref}
}
