package world

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// archive is many runs that have ended. Each follows from its number, so that none is held in memory but those that somebody changed.
type archive struct {
	seed    uint64
	from    time.Time     // when the first was started
	spacing time.Duration // between the starts of two
	n       int
	changed map[string]*run
}

// archiveSpan is in what time the runs of an archive were started.
const archiveSpan = 20 * 24 * time.Hour

func newArchive(seed uint64, until time.Time, n int) archive {
	spacing := max(archiveSpan/time.Duration(max(n, 1)), time.Millisecond).Truncate(time.Millisecond)
	from := until.Add(-time.Duration(n+1) * spacing).Truncate(time.Millisecond)
	return archive{seed: seed, from: from, spacing: spacing, n: n, changed: map[string]*run{}}
}

// archived are the types whose runs are in an archive.
var archived = []string{"order", "order", "invoice.send", "invoice.send", "thumbnail"}

func (a *archive) created(i int) time.Time { return a.from.Add(time.Duration(i) * a.spacing) }

func (a *archive) dice(i int) uint64 { return mix(a.seed, uint64(i), 7) }

func (a *archive) id(i int) string { return idAt(idStamp(a.created(i)), a.dice(i)) }

func (a *archive) plan(i int) *plan { return planOf(archived[a.dice(i)>>8%uint64(len(archived))]) }

func (a *archive) status(i int) kagziv1.WorkflowStatus {
	switch n := a.dice(i) >> 16 % 100; {
	case n < 92:
		return completed
	case n < 96:
		return failed
	case n < 98:
		return cancelled
	case n < 99:
		return timedOut
	}
	return terminated
}

// find is the run with an id, nil when there is none.
func (a *archive) find(id string) *run {
	if a.n == 0 || !isID(id) {
		return nil
	}
	i := int(idTime(id).Sub(a.from) / a.spacing)
	if i < 0 || i >= a.n || a.id(i) != id {
		return nil
	}
	return a.run(i)
}

// keep holds a run of the archive that was changed.
func (a *archive) keep(r *run) {
	if a.find(r.RunId) != nil {
		a.changed[r.RunId] = r
	}
}

func (a *archive) facts(i int, ids bool) facts {
	p := a.plan(i)
	f := facts{
		namespace: defaultNamespace, kind: p.kind, queue: p.queue, status: a.status(i), created: a.created(i), tags: a.tags(i), workerID: a.worker(p),
	}
	if ids {
		f.id, f.externalID = a.id(i), a.externalID(i)
	}
	return f
}

func (a *archive) externalID(i int) string { return fmt.Sprintf("batch-%07d", i+1) }

func (a *archive) tags(i int) map[string]string {
	return archiveTags[a.dice(i)>>24%uint64(len(archiveTags))]
}

var archiveTags = func() (list []map[string]string) {
	for _, c := range customers {
		list = append(list, map[string]string{"customer": c})
	}
	return list
}()

func (a *archive) worker(p *plan) string {
	for _, h := range staffing {
		if h.queue == p.queue {
			return h.id
		}
	}
	return ""
}

// run works a run out, with its steps.
func (a *archive) run(i int) *run {
	id := a.id(i)
	if r := a.changed[id]; r != nil {
		return r
	}
	p, l, at := a.plan(i), newLuck(a.seed, a.dice(i)), a.created(i)
	r := &run{plan: p, latest: map[string]*step{}, Workflow: &kagziv1.Workflow{
		Namespace: defaultNamespace, RunId: id, ExternalId: a.externalID(i), TaskQueue: p.queue, WorkflowType: p.kind, Version: p.version,
		Status: a.status(i), Input: jsonPayload(p.input(l)), Attempts: 1, Priority: proto.Int32(0), CreatedAt: stamp(at),
		StartedAt: stamp(at.Add(9 * time.Millisecond)), WorkerId: proto.String(a.worker(p)), Tags: a.tags(i), RetryPolicy: p.retry,
	}}
	at = at.Add(9 * time.Millisecond)
	last := len(p.acts) - 1
	if r.Status != completed {
		last = l.IntN(len(p.acts))
	}
	for n := 0; n <= last; n++ {
		at = a.step(r, &p.acts[n], n, n == last, l, at)
	}
	r.FinishedAt = stamp(at)
	if r.Status == completed && p.output != nil {
		r.Output = jsonPayload(p.output(l))
	}
	return r
}

// step works out what became of an act; the last one of a run that ended badly is where it stopped.
func (a *archive) step(r *run, act *act, n int, last bool, l luck, at time.Time) time.Time {
	s := &step{Step: &kagziv1.Step{
		Namespace: r.Namespace, StepId: idAt(idStamp(at)+uint64(n), l.Uint64()), RunId: r.RunId, Name: act.name, Kind: functionStep,
		Status: stepCompleted, AttemptNumber: 1, Sequence: int64(n + 1), CreatedAt: stamp(at), StartedAt: stamp(at), IsLatest: true, WorkerId: r.GetWorkerId(),
	}}
	over := at.Add(l.between(act.takes, act.upTo))
	s.FinishedAt = stamp(over)
	switch {
	case last && r.Status != completed:
		s.Status, s.Error = stepFailed, archivedFailure(r.Status, act)
		r.Error = s.Error
	case act.kind == nap:
		s.Kind, s.WakeUpAt, s.Output = sleepStep, s.FinishedAt, &kagziv1.Payload{}
	case act.output != nil:
		s.Output = jsonPayload(act.output(l, 0))
	}
	r.StepCount++
	r.steps = append(r.steps, s)
	r.latest[s.Name] = s
	return over
}

func archivedFailure(status kagziv1.WorkflowStatus, a *act) *kagziv1.ErrorDetail {
	switch {
	case status == cancelled:
		return endedBy("cancelled", "")
	case status == terminated:
		return endedBy("terminated", "")
	case status == timedOut:
		return &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_TIMEOUT, Type: "deadline", Message: "Workflow execution timeout exceeded", NonRetryable: true}
	case a.mishap != nil:
		return a.mishap.detail()
	}
	return usualMishap.detail()
}
