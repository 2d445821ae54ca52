package conformance

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/kagzi/kagzi/engine/conformance/program"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// family is a run with its children and the runs that it continued as.
type family struct {
	h    *host
	root string

	mu    sync.Mutex
	paths map[string]string // by run id: "" is the root, "/c" its child c, ">" the run that it continued as
	runs  map[string]string // by path
}

func newFamily(h *host, root string) *family {
	return &family{h: h, root: root, paths: map[string]string{root: ""}, runs: map[string]string{"": root}}
}

// add names a run.
func (f *family) add(run, path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.paths[run], f.runs[path] = path, run
}

func (f *family) path(run string) (string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	path, ok := f.paths[run]
	return path, ok
}

func (f *family) run(path string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.runs[path]
}

// member is one run of a family, as it is recorded.
type member struct {
	path string
	run  *kagziv1.Workflow
	rows []*kagziv1.Step // the latest attempt of each step
}

// members reads all runs of a family.
func (f *family) members(ctx context.Context) ([]member, error) {
	var all []member
	for open := []string{f.root}; len(open) > 0; {
		id := open[0]
		open = open[1:]
		path, _ := f.path(id)
		run, err := f.h.runs.GetWorkflow(ctx, &kagziv1.GetWorkflowRequest{Namespace: namespace, RunId: id})
		if err != nil {
			return nil, err
		}
		attempts, err := f.h.rows(ctx, id)
		if err != nil {
			return nil, err
		}
		m := member{path: path, run: run.GetWorkflow()}
		for _, s := range attempts {
			if !s.GetIsLatest() {
				continue
			}
			m.rows = append(m.rows, s)
			if child := s.GetChildRunId(); child != "" {
				f.add(child, path+"/"+s.GetName())
				open = append(open, child)
			}
		}
		if next := run.GetWorkflow().GetContinuedAsRunId(); next != "" {
			f.add(next, path+">")
			open = append(open, next)
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b member) int { return cmp.Compare(a.path, b.path) })
	return all, nil
}

func ended(s kagziv1.WorkflowStatus) bool {
	switch s {
	case kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED, kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED,
		kagziv1.WorkflowStatus_WORKFLOW_STATUS_CANCELLED, kagziv1.WorkflowStatus_WORKFLOW_STATUS_TIMED_OUT,
		kagziv1.WorkflowStatus_WORKFLOW_STATUS_TERMINATED:
		return true
	}
	return false
}

// isOwn reports whether a row is one of the SDK's own records that have no place in the order.
func isOwn(name string) bool {
	return strings.HasPrefix(name, "kagzi:") && name != "kagzi:cancelled"
}

// Record is what is compared of a run: without ids, times and what SDKs may choose.
type Record struct {
	Path   string `json:"path"`
	Status string `json:"status"`
	Error  string `json:"error,omitempty"`
	Output string `json:"output,omitempty"`
	Rows   []Row  `json:"rows"`
}

// Row is what is compared of the record of a call.
type Row struct {
	Order   int    `json:"order,omitempty"` // among the results of the run; 0: none
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Branch  string `json:"branch,omitempty"`
	Status  string `json:"status"`
	Result  string `json:"result,omitempty"`
	Signal  string `json:"signal,omitempty"`
	Attempt int32  `json:"attempt,omitempty"`
}

func (r Row) String() string {
	text := fmt.Sprintf("%2d %-8s %s", r.Order, r.Kind, r.Name)
	if r.Branch != "" {
		text += " in branch " + r.Branch
	}
	text += " " + r.Status
	if r.Attempt > 1 {
		text += " attempt " + strconv.Itoa(int(r.Attempt))
	}
	return text + " " + r.Result
}

// chance names the variables whose values differ between runs.
func chance(p *program.Program) map[string]bool {
	names := map[string]bool{}
	program.Each(p.Ops, func(o *program.Op) {
		switch o.Op {
		case "now", "random", "uuid":
			names[o.Into] = true
		}
	})
	return names
}

// place is where a result stands in the order of results; 0 if it has no place.
func place(s *kagziv1.Step) int64 {
	if isOwn(s.GetName()) {
		return 0
	}
	return s.GetSettled()
}

// interrupted reports whether a step was running, or was to be retried, when a lease or the run ended. Which
// of these is recorded depends on time: a retry that has begun is announced after a while.
func interrupted(s *kagziv1.Step) bool {
	return s.GetKind() == kagziv1.StepKind_STEP_KIND_FUNCTION &&
		(s.GetError().GetCode() == kagziv1.ErrorCode_ERROR_CODE_CRASHED || s.GetError().GetType() == "run_ended" ||
			s.GetStatus() == kagziv1.StepStatus_STEP_STATUS_RUNNING ||
			s.GetStatus() == kagziv1.StepStatus_STEP_STATUS_FAILED && s.GetRetryAt() != nil)
}

// dropped reports whether a row is that of a wait which the cancellation of its run ended before its result
// was there. The code does not get that result; whether it comes before the end of the run depends on time.
func (m *member) dropped(s *kagziv1.Step) bool {
	if k := s.GetKind(); k != kagziv1.StepKind_STEP_KIND_CHILD_WORKFLOW && k != kagziv1.StepKind_STEP_KIND_SIGNAL {
		return false
	}
	return slices.ContainsFunc(m.rows, func(c *kagziv1.Step) bool {
		return c.GetName() == "kagzi:cancelled" && (s.GetSettled() <= 0 || s.GetSettled() > c.GetSettled())
	})
}

// late reports whether a row is an own record that a branch made after the cancellation of its run. Calls fail
// at once then, so a sibling may end the branch before it comes so far: that depends on time.
func (m *member) late(s *kagziv1.Step) bool {
	return isOwn(s.GetName()) && s.GetBranch() != "" && slices.ContainsFunc(m.rows, func(c *kagziv1.Step) bool {
		return c.GetName() == "kagzi:cancelled" && s.GetSettled() > c.GetSettled()
	})
}

// record normalises a run. With attempts, the numbers of attempts are compared, too.
func (m member) record(p *program.Program, attempts bool) Record {
	r := Record{Path: m.path, Status: trimmed(m.run.GetStatus().String(), "WORKFLOW_STATUS_"), Error: errorText(m.run.GetError())}
	if m.run.GetStatus() == kagziv1.WorkflowStatus_WORKFLOW_STATUS_CANCELLED {
		r.Error = "" // SDKs word it
	} else if m.run.Output != nil {
		r.Output = resultText(m.run.GetOutput().GetData(), chance(p))
	}
	rows := slices.DeleteFunc(slices.Clone(m.rows), func(s *kagziv1.Step) bool { return interrupted(s) || m.late(s) })
	at := func(s *kagziv1.Step) int64 {
		if m.dropped(s) {
			return 0
		}
		return place(s)
	}
	slices.SortFunc(rows, func(a, b *kagziv1.Step) int {
		return cmp.Or(cmp.Compare(at(a), at(b)), cmp.Compare(a.GetName(), b.GetName()))
	})
	order := 0
	for _, s := range rows {
		if m.dropped(s) {
			r.Rows = append(r.Rows, Row{Name: s.GetName(), Kind: trimmed(s.GetKind().String(), "STEP_KIND_"), Branch: s.GetBranch(),
				Signal: s.GetSignalName(), Status: "*"})
			continue
		}
		row := Row{Name: s.GetName(), Kind: trimmed(s.GetKind().String(), "STEP_KIND_"), Branch: s.GetBranch(),
			Status: trimmed(s.GetStatus().String(), "STEP_STATUS_"), Signal: s.GetSignalName()}
		if attempts && s.GetKind() == kagziv1.StepKind_STEP_KIND_FUNCTION {
			row.Attempt = s.GetAttemptNumber()
		}
		if place(s) > 0 {
			order++
			row.Order = order
		}
		switch {
		case s.GetError() != nil:
			row.Result = errorText(s.GetError())
		case s.GetSignalTimedOut():
			row.Result = "timed out"
		case strings.HasPrefix(s.GetName(), "kagzi:seed"), strings.HasPrefix(s.GetName(), "kagzi:now"):
			row.Result = "*"
		case s.GetName() == "kagzi:cancelled":
			row.Result = m.runningAt(s)
		case s.GetKind() == kagziv1.StepKind_STEP_KIND_CHILD_WORKFLOW:
			row.Result = resultText(s.GetOutput().GetData(), chance(p))
		default:
			row.Result = valueText(s.GetOutput().GetData())
		}
		r.Rows = append(r.Rows, row)
	}
	return r
}

// runningAt lists the steps whose code ran when the run was cancelled, without those whose result came
// before: whether these are named depends on time.
func (m member) runningAt(cancelled *kagziv1.Step) string {
	var record struct {
		Running []string `json:"running"`
	}
	if json.Unmarshal(cancelled.GetOutput().GetData(), &record) != nil {
		return valueText(cancelled.GetOutput().GetData())
	}
	return "running " + strings.Join(slices.DeleteFunc(record.Running, func(name string) bool {
		return slices.ContainsFunc(m.rows, func(s *kagziv1.Step) bool {
			return s.GetName() == name && s.GetSettled() > 0 && s.GetSettled() < cancelled.GetSettled()
		})
	}), " ")
}

func trimmed(text, prefix string) string { return strings.TrimPrefix(text, prefix) }

// errorText is what is compared of an error. Messages count where the application wrote them.
func errorText(d *kagziv1.ErrorDetail) string {
	if d == nil {
		return ""
	}
	text := trimmed(d.GetCode().String(), "ERROR_CODE_")
	if d.GetType() != "" {
		text += " type " + d.GetType()
	}
	if d.GetNonRetryable() {
		text += " final"
	}
	if d.GetCode() == kagziv1.ErrorCode_ERROR_CODE_UNSPECIFIED && !ownTypes[d.GetType()] {
		text += ": " + d.GetMessage()
	}
	return "error " + text
}

// ownTypes are the types of errors whose messages the SDK writes.
var ownTypes = map[string]bool{"panic": true, "refused": true, "nondeterministic": true, "step_name_clash": true,
	"within_step": true, "deadlock": true, "unreadable": true, "continue_as_new": true, "cancelled": true}

// valueText returns a payload as one text for equal values.
func valueText(data []byte) string {
	text, err := canonical(data)
	if err != nil {
		return "not JSON: " + string(data)
	}
	return text
}

// resultText is valueText of a program's result without what chance decides.
func resultText(data []byte, chance map[string]bool) string {
	var r program.Result
	if json.Unmarshal(data, &r) != nil || r.Vars == nil {
		return valueText(data)
	}
	for name := range r.Vars {
		if chance[name] {
			r.Vars[name] = json.RawMessage(`"*"`)
		}
	}
	text, err := json.Marshal(r)
	if err != nil {
		return valueText(data)
	}
	return valueText(text)
}

// records normalises a whole family.
func records(all []member, p *program.Program, attempts bool) []Record {
	list := make([]Record, len(all))
	for i, m := range all {
		list[i] = m.record(p, attempts)
	}
	return list
}

// difference returns the first difference between two families; "" if there is none.
func difference(got, want []Record) string {
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			return "run " + strconv.Quote(want[i].Path) + " is missing"
		case i >= len(want):
			return "run " + strconv.Quote(got[i].Path) + " is one too many"
		}
		if d := got[i].difference(want[i]); d != "" {
			return "run " + strconv.Quote(got[i].Path) + ": " + d
		}
	}
	return ""
}

func (r Record) difference(want Record) string {
	if r.Path != want.Path {
		return "it is missing: " + strconv.Quote(want.Path)
	}
	for i := range max(len(r.Rows), len(want.Rows)) {
		switch {
		case i >= len(r.Rows):
			return fmt.Sprintf("row %q is missing", want.Rows[i])
		case i >= len(want.Rows):
			return fmt.Sprintf("row %q is one too many", r.Rows[i])
		case r.Rows[i] != want.Rows[i]:
			return fmt.Sprintf("row %q, want %q", r.Rows[i], want.Rows[i])
		}
	}
	switch {
	case r.Status != want.Status:
		return fmt.Sprintf("it is %s (%s), want %s (%s)", r.Status, r.Error, want.Status, want.Error)
	case r.Error != want.Error:
		return fmt.Sprintf("it failed with %q, want %q", r.Error, want.Error)
	case r.Output != want.Output:
		return fmt.Sprintf("it returned %s, want %s", r.Output, want.Output)
	}
	return ""
}
