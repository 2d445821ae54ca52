package storelogic

import (
	"crypto/sha256"
	"maps"

	"github.com/kagzi/kagzi/engine"
)

// NamespaceID returns the id of a namespace. It is derived from the name, so creating one needs no
// randomness.
func NamespaceID(name string) engine.ID {
	digest := sha256.Sum256([]byte("kagzi namespace " + name))
	digest[6], digest[8] = digest[6]&0x0f|0x80, digest[8]&0x3f|0x80
	return engine.ID(digest[:16])
}

// CreateNamespace makes a namespace that nothing has used yet.
func CreateNamespace(tx Tx, p engine.NamespaceParams) (engine.Namespace, error) {
	u := begin(tx, p.Now)
	known, err := tx.Namespace(p.Namespace.Name)
	if err != nil {
		return engine.Namespace{}, err
	}
	if known != nil {
		if sameNamespace(known, &p.Namespace) {
			return *known, nil
		}
		return engine.Namespace{}, &engine.Error{Kind: engine.KindExists, Subject: "namespace", SubjectID: known.Name,
			Message: "namespace " + known.Name + " exists already"}
	}
	n := p.Namespace
	n.ID, n.CreatedAt, n.UpdatedAt = NamespaceID(n.Name), u.now, u.now
	if err := tx.InsertNamespace(&n); err != nil {
		return engine.Namespace{}, err
	}
	tx.Notify(engine.Notification{Kind: engine.NotifyNamespace, Name: n.Name})
	if !sameRetention(&engine.Namespace{}, &n) {
		tx.Notify(engine.Notification{Kind: engine.NotifyAll})
	}
	return n, u.audit(p.By, p.AuditID, p.Method, onNamespace(&n), p.Reason, "")
}

// UpdateNamespace replaces the settings.
func UpdateNamespace(tx Tx, p engine.NamespaceParams) (engine.Namespace, error) {
	u := begin(tx, p.Now)
	known, err := tx.Namespace(p.Namespace.Name)
	switch {
	case err != nil:
		return engine.Namespace{}, err
	case known == nil:
		return engine.Namespace{}, engine.NamespaceNotFound(p.Namespace.Name)
	case sameNamespace(known, &p.Namespace):
		return *known, nil
	case !p.Namespace.UpdatedAt.IsZero() && !p.Namespace.UpdatedAt.Equal(known.UpdatedAt):
		return engine.Namespace{}, &engine.Error{Kind: engine.KindConflict, Subject: "namespace", SubjectID: known.Name,
			Message: "namespace " + known.Name + " was changed by somebody else since it was read; read it again"}
	}
	n := p.Namespace
	n.ID, n.CreatedAt, n.UpdatedAt = known.ID, known.CreatedAt, u.now
	if err := tx.SaveNamespace(&n); err != nil {
		return engine.Namespace{}, err
	}
	if n.Enabled && !known.Enabled {
		if err := u.fireWaiting(n.Name); err != nil {
			return engine.Namespace{}, err
		}
	}
	tx.Notify(engine.Notification{Kind: engine.NotifyNamespace, Name: n.Name})
	if n.Enabled && !known.Enabled || !sameRetention(known, &n) {
		tx.Notify(engine.Notification{Kind: engine.NotifyAll})
	}
	u.notifyTimer()
	return n, u.audit(p.By, p.AuditID, p.Method, onNamespace(&n), p.Reason, "")
}

// sameNamespace compares the settings of two namespaces.
func sameNamespace(n, m *engine.Namespace) bool {
	return n.DisplayName == m.DisplayName && n.Description == m.Description && n.Enabled == m.Enabled &&
		sameRetention(n, m) && n.FailureQueue == m.FailureQueue
}

func sameRetention(n, m *engine.Namespace) bool {
	return n.Retention == m.Retention && maps.Equal(n.Keep, m.Keep)
}

// ensureNamespace makes a namespace on its first use, unless it must exist.
func (u *unitOfWork) ensureNamespace(name string, must bool) error {
	known, err := u.tx.Namespace(name)
	if err != nil || known != nil {
		return err
	}
	if err := engine.MustExist(name, false, must); err != nil {
		return err
	}
	return u.tx.InsertNamespace(&engine.Namespace{
		Name: name, ID: NamespaceID(name), Enabled: true, CreatedAt: u.now, UpdatedAt: u.now})
}

// disabled says whether the namespace is disabled, so that nothing may start in it.
func (u *unitOfWork) disabled(name string) (bool, error) {
	known, err := u.tx.Namespace(name)
	return known != nil && !known.Enabled, err
}

// enabled refuses what a disabled namespace does not allow.
func (u *unitOfWork) enabled(name string) error {
	disabled, err := u.disabled(name)
	if err == nil && disabled {
		err = engine.NamespaceDisabled(name)
	}
	return err
}
