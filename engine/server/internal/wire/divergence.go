package wire

import (
	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// DivergenceOf reads and validates a report of divergence; nil for nil. Its build and time are left
// out, because the server sets them.
func DivergenceOf(d *kagziv1.Divergence) (*engine.Divergence, error) {
	if d == nil {
		return nil, nil
	}
	if err := engine.CheckBuildID("divergence.build_id", d.BuildId); err != nil {
		return nil, err
	}
	if _, err := TimeOf("divergence.reported_at", d.ReportedAt); err != nil {
		return nil, err
	}
	report := &engine.Divergence{Made: callsOf(d.Made), Owed: callsOf(d.Owed)}
	return report, report.Validate()
}

func callsOf(calls []*kagziv1.Call) (list []engine.Call) {
	for _, c := range calls {
		kind := engine.StepKind(0)
		if _, known := kagziv1.StepKind_name[int32(c.GetKind())]; known {
			kind = engine.StepKind(c.GetKind())
		}
		list = append(list, engine.Call{Name: c.GetName(), Kind: kind, Branch: c.GetBranch(), Detail: c.GetDetail()})
	}
	return list
}

// divergencesTo returns the messages of reports of divergence.
func divergencesTo(reports []engine.Divergence) (list []*kagziv1.Divergence) {
	for i := range reports {
		d := &reports[i]
		list = append(list, &kagziv1.Divergence{Made: callsTo(d.Made), Owed: callsTo(d.Owed), BuildId: d.BuildID,
			ReportedAt: TimeTo(d.ReportedAt)})
	}
	return list
}

func callsTo(calls []engine.Call) (list []*kagziv1.Call) {
	for _, c := range calls {
		list = append(list, &kagziv1.Call{Name: c.Name, Kind: kagziv1.StepKind(c.Kind), Branch: c.Branch,
			Detail: c.Detail})
	}
	return list
}

// BlockedOf reads and validates a worker's reports of blocked code.
func BlockedOf(reports []*kagziv1.BlockedCode) (list []engine.BlockedCode, err error) {
	if n := len(reports); n > engine.MaxBlocked {
		return nil, engine.Invalid("blocked", "has %d entries, at most %d are allowed", n, engine.MaxBlocked)
	}
	for _, r := range reports {
		id, err := IDOf("blocked.run_id", r.GetRunId())
		if err != nil {
			return nil, err
		}
		b := engine.BlockedCode{RunID: id.String(), Branch: r.GetBranch(), Stack: r.GetStack(),
			Held: callsOf(r.GetHeld()), Owed: callsOf(r.GetOwed())}
		if b.Since, err = TimeOf("blocked.since", r.GetSince()); err != nil {
			return nil, err
		}
		if err := b.Validate(); err != nil {
			return nil, err
		}
		list = append(list, b)
	}
	return list, nil
}

// BlockedTo returns the messages of reports of blocked code, without the run.
func BlockedTo(reports []engine.BlockedCode) (list []*kagziv1.BlockedCode) {
	for i := range reports {
		b := &reports[i]
		list = append(list, &kagziv1.BlockedCode{Branch: b.Branch, Since: TimeTo(b.Since), Stack: b.Stack,
			Held: callsTo(b.Held), Owed: callsTo(b.Owed)})
	}
	return list
}
