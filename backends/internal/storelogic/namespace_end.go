package storelogic

import (
	"crypto/sha256"
	"slices"

	"github.com/kagzi/kagzi/engine"
)

// DeleteNamespace deletes a namespace that holds nothing.
func DeleteNamespace(tx Tx, p engine.DeleteNamespaceParams) error {
	u := begin(tx, p.Now)
	n, err := tx.Namespace(p.Name)
	if err == nil && n == nil {
		err = engine.NamespaceNotFound(p.Name)
	}
	if err != nil {
		return err
	}
	holds, err := tx.Contents(p.Name)
	if err == nil && holds != (engine.Contents{}) {
		err = engine.NamespaceNotEmpty(p.Name, holds)
	}
	if err != nil {
		return err
	}
	if err := tx.DeleteNamespace(p.Name); err != nil {
		return err
	}
	tx.Notify(engine.Notification{Kind: engine.NotifyNamespace, Name: p.Name})
	tx.Notify(engine.Notification{Kind: engine.NotifyAll})
	return u.audit(p.By, p.AuditID, "DeleteNamespace", onNamespace(n), p.Reason, p.Detail)
}

// EmptyNamespace deletes part of what a namespace holds: hooks and schedules first, so that nothing
// is started, then runs, and what else names it last.
func EmptyNamespace(tx Tx, p engine.EmptyNamespaceParams) (done engine.Emptied, err error) {
	u := begin(tx, p.Now)
	if err := u.beginEmptying(&p); err != nil {
		return engine.Emptied{}, err
	}
	done.More = true
	hooks, err := tx.DeleteHooks(p.Name)
	if err != nil {
		return engine.Emptied{}, err
	}
	done.Hooks = int64(hooks)
	schedules, err := tx.SchedulesOf(p.Name, p.Limit)
	if err != nil {
		return engine.Emptied{}, err
	}
	for _, id := range schedules {
		if err := tx.DeleteSchedule(id); err != nil {
			return engine.Emptied{}, err
		}
		tx.Notify(engine.Notification{Kind: engine.NotifySchedule, Namespace: p.Name, Name: id.String()})
	}
	if done.Schedules = int64(len(schedules)); done.Schedules > 0 {
		return done, nil
	}
	open, err := tx.OpenRunsOf(p.Name, p.Limit)
	if err != nil {
		return engine.Emptied{}, err
	}
	if len(open) > 0 {
		return done, u.terminateAll(open, p.Name)
	}
	deleted, err := tx.DeleteEndedRuns(p.Name, p.Limit)
	if done.Runs = int64(deleted); err != nil || deleted > 0 {
		return done, err
	}
	past, err := tx.DeletePastRequests(p.Name, p.Limit)
	if err != nil || past > 0 {
		return done, err
	}
	done.More = false
	workers, err := tx.DeleteWorkers(p.Name)
	if err != nil {
		return engine.Emptied{}, err
	}
	for _, id := range workers {
		u.notifyWorker(id)
	}
	done.Workers = int64(len(workers))
	done.Keys, err = u.forgetInKeys(&p)
	return done, err
}

// beginEmptying disables the namespace, so that nothing starts in it while it is emptied.
func (u *unitOfWork) beginEmptying(p *engine.EmptyNamespaceParams) error {
	n, err := u.tx.Namespace(p.Name)
	switch {
	case err != nil:
		return err
	case n == nil:
		return engine.NamespaceNotFound(p.Name)
	case p.Again && n.Enabled:
		return &engine.Error{Kind: engine.KindConflict, Subject: "namespace", SubjectID: p.Name,
			Message: "namespace " + p.Name + " was enabled while it was being deleted: what is left of it stays; " +
				"delete it again to go on"}
	case p.Again:
		return nil
	}
	if n.Enabled {
		n.Enabled, n.UpdatedAt = false, u.now
		if err := u.tx.SaveNamespace(n); err != nil {
			return err
		}
		u.tx.Notify(engine.Notification{Kind: engine.NotifyNamespace, Name: n.Name})
	}
	return u.audit(p.By, p.AuditID, "DeleteNamespace", onNamespace(n), p.Reason,
		"begun: disabled, and everything in it is being deleted")
}

// terminateAll ends runs, and with them their open children.
func (u *unitOfWork) terminateAll(ids []engine.ID, namespace string) error {
	failure := engine.EndedByFailure(engine.RunTerminated, "namespace "+namespace+" is being deleted")
	for _, id := range ids {
		run, err := u.find(namespace, id)
		if err != nil {
			return err
		}
		if run == nil || run.Status.Ended() { // it ended meanwhile, or with its parent
			continue
		}
		u.notifyWorker(run.Holder)
		if err := u.end(run, engine.RunTerminated, &failure, engine.Token{}); err != nil {
			return err
		}
	}
	return u.flush()
}

// forgetInKeys removes a namespace from all keys, and returns how many named it. A key for this
// namespace alone is revoked, because a key without namespaces is for all.
func (u *unitOfWork) forgetInKeys(p *engine.EmptyNamespaceParams) (n int64, err error) {
	keys, err := u.tx.Keyring()
	if err != nil {
		return 0, err
	}
	for i := range keys {
		k := &keys[i]
		if !slices.Contains(k.Namespaces, p.Name) {
			continue
		}
		n++
		method, detail := "RevokeKey", keyDetail(k)
		rest := slices.DeleteFunc(slices.Clone(k.Namespaces), func(s string) bool { return s == p.Name })
		if len(rest) == 0 {
			err = u.tx.RevokeAPIKey(k.ID, u.now)
		} else {
			method, detail = "DeleteNamespace", detail+" is no longer for namespace "+p.Name
			err = u.tx.SaveKeyNamespaces(k.ID, rest)
		}
		if err != nil {
			return 0, err
		}
		if err := u.audit(p.By, auditOfKey(p.AuditID, k.ID), method, onKey(k), p.Reason, detail); err != nil {
			return 0, err
		}
	}
	if n > 0 {
		u.tx.Notify(engine.Notification{Kind: engine.NotifyKeys})
	}
	return n, nil
}

// auditOfKey returns the id of an audit event about a key, made from the id of the call: an id of the
// same time.
func auditOfKey(call, key engine.ID) engine.ID {
	digest := sha256.Sum256(append(call[:], key[:]...))
	copy(call[9:], digest[:])
	return call
}
