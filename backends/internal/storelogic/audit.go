package storelogic

import "github.com/kagzi/kagzi/engine"

// subject is the object that an audit event is about.
type subject struct{ namespace, kind, id string }

func onRun(r *Run) subject { return subject{r.Namespace, "run", r.ID.String()} }

func onSchedule(s *engine.Schedule) subject { return subject{s.Namespace, "schedule", s.ID.String()} }

func onNamespace(n *engine.Namespace) subject { return subject{n.Name, "namespace", n.Name} }

func onWorker(w *engine.Worker) subject { return subject{w.Namespace, "worker", w.ID} }

// onKey has no namespace, because a key may be for many.
func onKey(k *engine.APIKey) subject { return subject{"", "key", k.ID.String()} }

func onHook(h *engine.Hook) subject { return subject{h.Namespace, "hook", h.ID.String()} }

// audit writes an audit event.
func (u *unitOfWork) audit(by engine.Actor, id engine.ID, method string, of subject, reason, detail string) error {
	return u.tx.InsertAudit(engine.AuditEvent{
		ID: id, At: u.now, Actor: by, Method: method, Namespace: of.namespace, Subject: of.kind, SubjectID: of.id,
		Outcome: "ok", Reason: reason, Detail: detail,
	})
}
