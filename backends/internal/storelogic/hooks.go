package storelogic

import (
	"fmt"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// CreateHook makes a hook. If the same hook with the same id exists, it returns that one.
func CreateHook(tx Tx, p engine.CreateHookParams) (engine.Hook, error) {
	u := begin(tx, p.Now)
	h := p.Hook
	h.CreatedAt, h.RotatedAt, h.OldSecret, h.OldUntil = u.now, time.Time{}, "", time.Time{}
	known, err := tx.Hook(h.ID)
	switch {
	case err != nil:
		return engine.Hook{}, err
	case known == nil:
	case sameHook(known, &h):
		return *known, nil
	default:
		return engine.Hook{}, hookExists("there is another hook with the id "+h.ID.String(), h.ID)
	}
	if err := u.enabled(h.Namespace); err != nil {
		return engine.Hook{}, err
	}
	if err := u.roomForHook(&h); err != nil {
		return engine.Hook{}, err
	}
	if err := u.ensureNamespace(h.Namespace, p.NamespaceMustExist); err != nil {
		return engine.Hook{}, err
	}
	if err := tx.InsertHook(&h); err != nil {
		return engine.Hook{}, err
	}
	return h, u.audit(p.By, p.AuditID, "CreateHook", onHook(&h), "", hookDetail(&h))
}

// roomForHook returns an error if the hook may not be added to those of its namespace.
func (u *unitOfWork) roomForHook(h *engine.Hook) error {
	other, err := u.tx.HookNamed(h.Namespace, h.Name)
	if err != nil {
		return err
	}
	if other != nil {
		return hookExists("the name "+h.Name+" is taken by hook "+other.ID.String()+
			"; delete that one first, or choose another name", other.ID)
	}
	n, err := u.tx.CountHooks(h.Namespace)
	if err == nil && n >= engine.MaxHooks {
		err = &engine.Error{Kind: engine.KindPrecondition, Subject: "namespace", SubjectID: h.Namespace,
			Message: fmt.Sprintf("namespace %s has %d hooks, and no more are allowed; delete some first", h.Namespace, n)}
	}
	return err
}

// RotateHook gives a hook a new secret.
func RotateHook(tx Tx, p engine.RotateHookParams) (engine.Hook, error) {
	u := begin(tx, p.Now)
	h, err := u.hookNamed(p.Namespace, p.Name)
	if err != nil {
		return engine.Hook{}, err
	}
	until := engine.Micros(p.OldUntil)
	switch {
	case h.Secret == p.Secret:
		return *h, nil
	case !until.IsZero() && u.now.Before(h.OldUntil):
		return engine.Hook{}, &engine.Error{Kind: engine.KindPrecondition, Subject: "hook", SubjectID: h.ID.String(),
			Message: fmt.Sprintf("hook %s was rotated before, and the secret from before that is valid until %s; "+
				"wait until then, or replace all its secrets at once with --overlap 0", h.Name,
				h.OldUntil.UTC().Format(time.RFC3339))}
	case until.IsZero():
		h.OldSecret, h.OldUntil = "", time.Time{}
	default:
		h.OldSecret, h.OldUntil = h.Secret, until
	}
	h.Secret, h.RotatedAt = p.Secret, u.now
	if err := tx.SaveHookSecrets(h); err != nil {
		return engine.Hook{}, err
	}
	detail := h.Name + ": the secret before is no longer valid"
	if !until.IsZero() {
		detail = h.Name + ": the secret before is valid until " + until.UTC().Format(time.RFC3339)
	}
	return *h, u.audit(p.By, p.AuditID, "RotateHook", onHook(h), "", detail)
}

// DeleteHook deletes a hook; its runs stay.
func DeleteHook(tx Tx, p engine.DeleteHookParams) error {
	u := begin(tx, p.Now)
	h, err := u.hookNamed(p.Namespace, p.Name)
	if err != nil {
		return err
	}
	if err := tx.DeleteHook(h.ID); err != nil {
		return err
	}
	return u.audit(p.By, p.AuditID, "DeleteHook", onHook(h), "", hookDetail(h))
}

// hookNamed returns the hook of a namespace with a name, or HookNotFound.
func (u *unitOfWork) hookNamed(namespace, name string) (*engine.Hook, error) {
	h, err := u.tx.HookNamed(namespace, name)
	if err == nil && h == nil {
		err = engine.HookNotFound(name)
	}
	return h, err
}

// sameHook compares everything that is set when a hook is made, except the time and the secret,
// which may have been rotated since.
func sameHook(a, b *engine.Hook) bool {
	return a.Namespace == b.Namespace && a.Name == b.Name && a.Queue == b.Queue && a.Type == b.Type &&
		a.Scheme == b.Scheme
}

// hookDetail describes a hook for the audit, without its secrets.
func hookDetail(h *engine.Hook) string {
	return h.Scheme.String() + " hook " + h.Name + " that starts " + h.Type + " on queue " + h.Queue
}

func hookExists(message string, id engine.ID) error {
	return &engine.Error{Kind: engine.KindExists, Subject: "hook", SubjectID: id.String(), Message: message}
}
