package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/bundle"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// exported is a capsule of the oldest run in the books, and how it came.
func exported(t *testing.T, b *servertest.Books, redact bool) []byte {
	t.Helper()
	_, conn := serve(t, b)
	id := b.Runs[len(b.Runs)-1].ID
	stream, err := kagziv1.NewWorkflowServiceClient(conn).ExportWorkflow(
		t.Context(), &kagziv1.ExportWorkflowRequest{RunId: id.String(), RedactPayloads: redact})
	if err != nil {
		t.Fatal(err)
	}
	var file []byte
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return file
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(part.Data) == 0 || len(part.Data) > bundle.ChunkBytes {
			t.Errorf("a part of %d bytes, want 1 to %d", len(part.Data), bundle.ChunkBytes)
		}
		file = append(file, part.Data...)
	}
}

// imported returns the runs that a store is asked to make from a capsule.
func imported(t *testing.T, b *servertest.Books, file []byte) (*kagziv1.ImportWorkflowResponse, error) {
	t.Helper()
	_, conn := serve(t, b)
	stream, err := kagziv1.NewWorkflowServiceClient(conn).ImportWorkflow(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	part := &kagziv1.Capsule{Namespace: "other", RequestId: "once"}
	for chunk := range slices.Chunk(file, 1<<20) {
		part.Data = chunk
		if err := stream.Send(part); err != nil {
			break // the answer says why
		}
		part = &kagziv1.Capsule{}
	}
	return stream.CloseAndRecv()
}

func TestACapsuleHoldsARunWithAllThatItLedTo(t *testing.T) {
	b := servertest.Family()
	names, content := servertest.Files(t, exported(t, b, false))
	var m bundle.Manifest
	if err := json.Unmarshal(content[bundle.ManifestFile], &m); err != nil {
		t.Fatal(err)
	}
	root, first, second := b.Runs[3].ID.String(), b.Runs[2].ID.String(), b.Runs[1].ID.String()
	run := func(id, status, parent string) bundle.ManifestRun {
		return bundle.ManifestRun{RunID: id, WorkflowType: "t", Status: status, ParentRunID: parent,
			Directory: "runs/" + id}
	}
	want := []bundle.ManifestRun{run(root, "COMPLETED", ""), run(first, "COMPLETED", root),
		run(second, "RUNNING", root)}
	if diff := cmp.Diff(want, m.Runs); diff != "" || names[0] != bundle.ManifestFile || len(names) != 13 {
		t.Errorf("files %v, runs differ:\n%s", names, diff)
	}
	if m.Format != "kagzi-capsule" || m.Version != 1 || m.RootRunID != root || m.Namespace != "default" || m.Redacted ||
		m.ExportedAt.IsZero() {
		t.Errorf("manifest = %+v", m)
	}
	var steps []map[string]any
	if err := json.Unmarshal(content["runs/"+root+"/steps.json"], &steps); err != nil || len(steps) != 251 {
		t.Errorf("%d steps, %v, want 251", len(steps), err)
	}
	if steps[250]["child_run_id"] != first || steps[0]["attempt_number"] != 1.0 {
		t.Errorf("steps are written as %v … %v, want the names of the contract", steps[0], steps[250])
	}
	var audit, none []map[string]any
	if err := json.Unmarshal(content["runs/"+root+"/audit.json"], &audit); err != nil ||
		len(audit) != engine.MaxPage+1 || audit[0]["reason"] != "why" {
		t.Errorf("%d entries of the audit log, %v, want all", len(audit), err)
	}
	if err := json.Unmarshal(content["runs/"+first+"/steps.json"], &none); err != nil || none == nil || len(none) != 0 {
		t.Errorf("no steps are written as %v, %v, want an empty array", none, err)
	}
}

func TestARedactedCapsuleKeepsSizesAndHashesOnly(t *testing.T) {
	file := exported(t, servertest.Family(), true)
	_, content := servertest.Files(t, file)
	for name, text := range content {
		for _, secret := range []string{"aW4gb2Yg", "c2lnbmFs", "text/plain"} {
			// base64 of what the payloads begin with
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("%s still holds a payload", name)
			}
		}
	}
	b := servertest.Family()
	if _, err := imported(t, b, file); status.Code(err) != codes.InvalidArgument ||
		!strings.Contains(err.Error(), "redacted") || b.Changes() != 0 {
		t.Errorf("importing it: %v", err)
	}
}

func TestAnImportMakesTheRunsUnderNewIDs(t *testing.T) {
	source, b := servertest.Family(), &servertest.Books{}
	answer, err := imported(t, b, exported(t, source, false))
	if err != nil {
		t.Fatal(err)
	}
	p := servertest.Last[engine.ImportRunsParams](b)
	if answer.Runs != 3 || answer.RunId != p.Runs[0].Run.ID.String() || p.Namespace != "other" ||
		p.RequestID != "once" || p.By.Name != "local" || p.AuditID.IsZero() {
		t.Errorf("answer %v to %+v", answer, p.By)
	}
	root, first, second := &p.Runs[0], &p.Runs[1], &p.Runs[2]
	old := map[engine.ID]bool{}
	for _, r := range source.Runs {
		old[r.ID] = true
		for _, s := range source.Steps[r.ID] {
			old[s.ID] = true
		}
	}
	for _, r := range p.Runs {
		if old[r.Run.ID] || r.Run.Namespace != "other" || r.Run.Origin != engine.OriginImport ||
			r.Run.ScheduleID != "" {
			t.Errorf("run %+v", r.Run)
		}
		for _, s := range r.Steps {
			if old[s.ID] || s.RunID != r.Run.ID || !s.Token.IsZero() || old[s.ChildRunID] {
				t.Errorf("step %+v", s)
			}
		}
	}
	if first.Run.ParentRunID != root.Run.ID || first.Run.ParentStepID != root.Steps[250].ID ||
		root.Steps[250].ChildRunID != first.Run.ID ||
		first.Run.ContinuedAs != second.Run.ID || second.Run.ContinuedFrom != first.Run.ID ||
		second.Run.FirstRunID != first.Run.ID || !second.Run.RetriedFrom.IsZero() {
		t.Errorf("references: child of %s by %s, continued as %s from %s, first %s, retried from %s",
			first.Run.ParentRunID, first.Run.ParentStepID, first.Run.ContinuedAs, second.Run.ContinuedFrom,
			second.Run.FirstRunID, second.Run.RetriedFrom)
	}
	was := source.Runs[3]
	if diff := cmp.Diff(was, root.Run, cmpopts.IgnoreFields(
		engine.Run{}, "ID", "Namespace", "Origin", "Steps", "Bytes", "ScheduleID")); diff != "" {
		t.Errorf("the run that has ended changed:\n%s", diff)
	}
	if root.Run.Steps != 251 || root.Run.Bytes == 0 {
		t.Errorf("%d steps of %d bytes", root.Run.Steps, root.Run.Bytes)
	}
	if diff := cmp.Diff(source.Steps[was.ID], root.Steps,
		cmpopts.IgnoreFields(engine.Step{}, "ID", "RunID", "ChildRunID", "Token")); diff != "" {
		t.Errorf("its steps changed:\n%s", diff)
	}
	if diff := cmp.Diff(source.Signals[was.ID], root.Signals,
		cmpopts.IgnoreFields(engine.Signal{}, "RunID")); diff != "" || root.Signals[0].RunID != root.Run.ID {
		t.Errorf("its signals, of %s, changed:\n%s", root.Signals[0].RunID, diff)
	}
}

func TestAnOpenRunIsImportedReadyToContinue(t *testing.T) {
	b := &servertest.Books{}
	if _, err := imported(t, b, exported(t, servertest.Family(), false)); err != nil {
		t.Fatal(err)
	}
	p := servertest.Last[engine.ImportRunsParams](b)
	open := p.Runs[2]
	r := open.Run
	if r.Status != engine.RunPending || !r.Paused || !r.HeldAt.Equal(p.Now) || !r.AvailableAt.IsZero() ||
		r.WorkerID != "" ||
		!r.CancelRequestedAt.IsZero() || !r.GraceUntil.IsZero() || !r.DeadlineAt.IsZero() {
		t.Errorf("run %+v", r)
	}
	lost, cut, nap := open.Steps[0], open.Steps[1], open.Steps[2]
	if !lost.Interrupted() || lost.Latest || !cut.Interrupted() || !cut.Latest || cut.Failures != 0 ||
		cut.Attempt != 2 || cut.Sequence != 1 {
		t.Errorf("attempts %+v and %+v, want both interrupted and only the second the latest", lost, cut)
	}
	if nap.Status != engine.StepRunning || nap.Duration != time.Hour ||
		!nap.WakeAt.Equal(servertest.Began.Add(time.Hour)) || nap.Sequence != 2 {
		t.Errorf("timer %+v", nap)
	}
	if open.Signals[0].StepName != "" {
		t.Error("a signal that no step has consumed does not wait")
	}
}

func TestAChildIsImportedToEndWithItsParentAsItWould(t *testing.T) {
	source, b := servertest.Family(), &servertest.Books{}
	source.Runs[1].ParentClose = engine.CloseTerminate
	if _, err := imported(t, b, exported(t, source, false)); err != nil {
		t.Fatal(err)
	}
	if child := servertest.Last[engine.ImportRunsParams](b).Runs[2].Run; child.ParentRunID.IsZero() ||
		child.ParentClose != engine.CloseTerminate {
		t.Errorf("child of %s, which has it %d at its end, want %d", child.ParentRunID, child.ParentClose,
			engine.CloseTerminate)
	}
}

func TestAGivenDeadlineHoldsForContinuationsOfAnImportedRun(t *testing.T) {
	ahead := time.Now().UTC().Truncate(time.Second).Add(time.Hour)
	for _, c := range []struct {
		what            string
		deadline, named time.Time // of the run that is exported
		want            time.Time // of the run that it continued as, whose limit counts again
	}{
		{"the limit comes first", ahead, ahead.Add(time.Hour), ahead.Add(time.Hour)},
		{"the limit has passed", servertest.Began.Add(time.Minute), ahead.Add(time.Hour), ahead.Add(time.Hour)},
		{"both have passed", servertest.Began.Add(time.Minute), servertest.Began.Add(time.Hour), time.Time{}},
		{"the named one comes first", ahead, ahead, ahead},
	} {
		source, b := servertest.Family(), &servertest.Books{}
		source.Runs[1].Timeouts.Execution = 5 * 365 * 24 * time.Hour
		source.Runs[1].DeadlineAt, source.Runs[1].NamedDeadlineAt = c.deadline, c.named
		if _, err := imported(t, b, exported(t, source, false)); err != nil {
			t.Fatal(err)
		}
		p := servertest.Last[engine.ImportRunsParams](b)
		run := p.Runs[2].Run
		if run.DeadlineAt.IsZero() != c.want.IsZero() || !run.DeadlineAt.IsZero() && !run.DeadlineAt.After(p.Now) {
			t.Errorf("%s: the imported run ends at %s", c.what, run.DeadlineAt)
		}
		next := engine.Continuation(&run, engine.StartRun{}, p.Now)
		if limit := p.Now.Add(run.Timeouts.Execution); c.want.IsZero() && !next.DeadlineAt.Equal(limit) ||
			!c.want.IsZero() && !next.DeadlineAt.Equal(c.want) {
			t.Errorf("%s: what goes on for it ends at %s, want %s", c.what, next.DeadlineAt, c.want)
		}
	}
}

func TestWhatAnEndedRunLeftOpenIsImportedAsEnded(t *testing.T) {
	id := servertest.SomeID(1)
	b := &servertest.Books{
		Runs: []engine.Run{{ID: id, Namespace: "default", Queue: "q", Type: "t", Status: engine.RunFailed, Attempts: 1,
			CreatedAt: servertest.Began, FinishedAt: servertest.Began}},
		Steps: map[engine.ID][]engine.Step{id: {
			{ID: servertest.SomeID(2), Name: "child", Kind: engine.StepChild, Status: engine.StepRunning, Attempt: 1,
				Sequence: 1, ChildRunID: servertest.SomeID(99), CreatedAt: servertest.Began},
			{ID: servertest.SomeID(3), Name: "again", Kind: engine.StepFunction, Status: engine.StepPending, Attempt: 1,
				Sequence: 2, CreatedAt: servertest.Began},
		}},
	}
	if _, err := imported(t, b, exported(t, b, false)); err != nil {
		t.Fatal(err)
	}
	steps := servertest.Last[engine.ImportRunsParams](b).Runs[0].Steps
	if len(steps) != 2 {
		t.Fatalf("steps %+v, want both", steps)
	}
	for _, s := range steps {
		if s.Status != engine.StepFailed || s.Error.Type != "run_ended" || !s.FinishedAt.Equal(servertest.Began) {
			t.Errorf("step %+v", s)
		}
	}
}

func TestAStepWhoseChildEndedMeanwhileIsImportedAsEnded(t *testing.T) {
	for _, c := range []struct {
		child engine.RunStatus
		want  engine.StepStatus
	}{{engine.RunCompleted, engine.StepCompleted}, {engine.RunTerminated, engine.StepFailed},
		{engine.RunRunning, engine.StepRunning}} {
		parent, child := servertest.SomeID(1), servertest.SomeID(2)
		b := &servertest.Books{Steps: map[engine.ID][]engine.Step{parent: {
			{ID: servertest.SomeID(3), Name: "child", Kind: engine.StepChild, Status: engine.StepRunning, Attempt: 1,
				Sequence: 1, ChildRunID: child, CreatedAt: servertest.Began},
			{ID: servertest.SomeID(4), Name: "gone", Kind: engine.StepChild, Status: engine.StepRunning, Attempt: 1,
				Sequence: 2, ChildRunID: servertest.SomeID(99), CreatedAt: servertest.Began},
			{ID: servertest.SomeID(5), Name: "after", Kind: engine.StepFunction, Status: engine.StepCompleted,
				Attempt: 1, Sequence: 3, CreatedAt: servertest.Began},
		}}}
		for _, r := range []engine.Run{{ID: child, Status: c.child, ParentRunID: parent,
			Output: servertest.TextPayload("result")}, {ID: parent, Status: engine.RunSleeping}} {
			r.Namespace, r.Queue, r.Type, r.Attempts, r.CreatedAt = "default", "q", "t", 1, servertest.Began
			if r.Status.Ended() {
				r.FinishedAt = servertest.Began.Add(time.Minute)
			}
			b.Runs = append(b.Runs, r)
		}
		if _, err := imported(t, b, exported(t, b, false)); err != nil {
			t.Fatal(err)
		}
		p := servertest.Last[engine.ImportRunsParams](b)
		steps := p.Runs[0].Steps
		if len(steps) != 3 || steps[0].Status != c.want || !steps[1].Interrupted() || !steps[1].ChildRunID.IsZero() ||
			steps[2].Name != "after" {
			t.Fatalf(
				"child %s: steps %+v, want the child's %s, then one whose child is to be started again, then the last",
				c.child, steps, c.want)
		}
		switch c.want {
		case engine.StepCompleted:
			if string(steps[0].Output.Data) != "result" || steps[0].FinishedAt.IsZero() {
				t.Errorf("step %+v, want the child's output", steps[0])
			}
		case engine.StepFailed:
			if steps[0].Error.Metadata["child_run_id"] != p.Runs[1].Run.ID.String() ||
				steps[0].Error.Metadata["child_status"] != "TERMINATED" {
				t.Errorf("failure %+v, want it to name the child as it is here", steps[0].Error)
			}
		}
	}
}

func TestOtherFilesThanCapsulesAreRefused(t *testing.T) {
	source := servertest.Family()
	_, good := servertest.Files(t, exported(t, source, false))
	root := "runs/" + source.Runs[3].ID.String()
	edit := func(name, from, to string) func(map[string][]byte) {
		return func(c map[string][]byte) {
			if !bytes.Contains(c[name], []byte(from)) {
				t.Fatalf("%s does not hold %s", name, from)
			}
			c[name] = bytes.ReplaceAll(c[name], []byte(from), []byte(to))
		}
	}
	for _, c := range []struct {
		what   string
		change func(map[string][]byte)
		names  string // the answer says
	}{
		{"no manifest", func(c map[string][]byte) { delete(c, bundle.ManifestFile) }, "manifest.json: is missing"},
		{"another format", edit(bundle.ManifestFile, "kagzi-capsule", "zip-of-cats"), "manifest.json: format"},
		{"a manifest that is no JSON", func(c map[string][]byte) {
			c[bundle.ManifestFile] = []byte("[")
		}, "manifest.json: is not the manifest"},
		{"no runs", edit(bundle.ManifestFile, `"runs": [`, `"runs": [], "others": [`), "manifest.json: runs: must be"},
		{"a run's id in another spelling", func(c map[string][]byte) {
			c[bundle.ManifestFile] = bytes.ReplaceAll(
				c[bundle.ManifestFile], []byte(source.Runs[3].ID.String()),
				[]byte(strings.ToUpper(source.Runs[3].ID.String())))
		}, "manifest.json: runs[0].run_id"},
		{"a newer version", edit(bundle.ManifestFile, `"version": 1`, `"version": 2`), "manifest.json: version"},
		{"a directory elsewhere", edit(bundle.ManifestFile, `"directory": "runs/`, `"directory": "../`),
			"manifest.json: runs[0].directory"},
		{"another root", edit(bundle.ManifestFile, `"root_run_id": "`, `"root_run_id": "x`),
			"manifest.json: root_run_id"},
		{"a run that is missing", func(c map[string][]byte) {
			delete(c, root+"/run.json")
		}, root + "/run.json: is missing"},
		{"steps that are missing", func(c map[string][]byte) {
			delete(c, root+"/steps.json")
		}, root + "/steps.json: is missing"},
		{"a bad name", edit(root+"/run.json", `"task_queue": "q"`, `"task_queue": "a b"`),
			root + "/run.json: task_queue"},
		{"a schedule's status", edit(root+"/run.json", "WORKFLOW_STATUS_COMPLETED", "WORKFLOW_STATUS_PAUSED"),
			root + "/run.json: status"},
		{"a time that is none", edit(root+"/run.json", `"scheduled_at": "2026`, `"scheduled_at": "1926`),
			root + "/run.json: scheduled_at"},
		{"no end of a run that has ended", edit(root+"/run.json", `"finished_at"`, `"no_end_at"`),
			root + "/run.json: finished_at"},
		{"a reference to nothing", edit(root+"/run.json", `"task_queue": "q"`,
			`"task_queue": "q", "parent_run_id": "x"`), root + "/run.json: parent_run_id"},
		{"a failure that is none", edit(root+"/run.json", `"task_queue": "q"`,
			`"task_queue": "q", "error": {"retry_after_ms": -1}`), root + "/run.json: error.retry_after_ms"},
		{"a status out of range", edit(root+"/run.json", `"WORKFLOW_STATUS_COMPLETED"`, "260"),
			root + "/run.json: status"},
		{"a policy that is none", edit(root+"/run.json", `"task_queue": "q"`,
			`"task_queue": "q", "parent_close_policy": 4`), root + "/run.json: parent_close_policy"},
		{"a run of another id", edit(root+"/run.json", `"run_id": "`, `"run_id": "x`), root + "/run.json: run_id"},
		{"no JSON", func(c map[string][]byte) {
			c[root+"/run.json"] = []byte("{")
		}, root + "/run.json: is not the JSON"},
		{"no array", func(c map[string][]byte) {
			c[root+"/steps.json"] = []byte("{}")
		}, root + "/steps.json: is not an array"},
		{"half an array", func(c map[string][]byte) {
			c[root+"/signals.json"] = []byte("[")
		}, root + "/signals.json: is not a whole array"},
		{"a bad step", edit(root+"/steps.json", `"name": "s7"`, `"name": ""`), root + "/steps.json[7]: name"},
		{"a step twice", edit(root+"/steps.json", `"name": "s7"`, `"name": "s8"`),
			root + "/steps.json: attempt_number"},
		{"an id twice", edit(root+"/steps.json", source.Steps[source.Runs[3].ID][7].ID.String(),
			source.Steps[source.Runs[3].ID][8].ID.String()), root + "/steps.json: step_id"},
		{"a step of no kind", edit(root+"/steps.json", `"STEP_KIND_CHILD_WORKFLOW"`, "0"),
			root + "/steps.json[250]: kind"},
		{"a bad signal", edit(root+"/signals.json", `"name": "go"`, `"name": "a b"`), root + "/signals.json[0]: name"},
		{"a child before its parent", func(c map[string][]byte) {
			var m bundle.Manifest
			if err := json.Unmarshal(c[bundle.ManifestFile], &m); err != nil {
				t.Fatal(err)
			}
			slices.Reverse(m.Runs)
			m.RootRunID = m.Runs[0].RunID
			c[bundle.ManifestFile], _ = json.Marshal(m)
		}, "parent_run_id"},
		{"a run twice", func(c map[string][]byte) {
			var m bundle.Manifest
			if err := json.Unmarshal(c[bundle.ManifestFile], &m); err != nil {
				t.Fatal(err)
			}
			m.Runs = append(m.Runs, m.Runs[0])
			c[bundle.ManifestFile], _ = json.Marshal(m)
		}, "manifest.json: runs[3].run_id"},
	} {
		content := maps.Clone(good)
		c.change(content)
		b := &servertest.Books{}
		_, err := imported(t, b, servertest.Packed(t, content))
		if status.Code(err) != codes.InvalidArgument || servertest.DetailOf(t, err).Metadata["field"] != "data" ||
			!strings.Contains(err.Error(), c.names) || b.Changes() != 0 {
			t.Errorf("%s: %v, want it to name %s", c.what, err, c.names)
		}
	}
}

func TestADamagedCapsuleIsRefused(t *testing.T) {
	file := exported(t, servertest.Family(), false)
	for _, at := range []int{len(file) / 4, len(file) / 2} {
		broken := bytes.Clone(file)
		broken[at] ^= 0x55
		b := &servertest.Books{}
		if _, err := imported(t, b, broken); status.Code(err) != codes.InvalidArgument || b.Changes() != 0 {
			t.Errorf("a byte changed at %d of %d: %v", at, len(file), err)
		}
	}
	b := &servertest.Books{}
	if _, err := imported(t, b, file[:len(file)-100]); status.Code(err) != codes.InvalidArgument || b.Changes() != 0 {
		t.Errorf("the end is missing: %v", err)
	}
}

// capsuleStream is the server's end of an import: it brings these parts and then breaks.
type capsuleStream struct {
	grpc.ServerStream
	ctx   context.Context
	parts [][]byte
	fails error
}

func (c *capsuleStream) Context() context.Context { return c.ctx }

func (c *capsuleStream) SendAndClose(*kagziv1.ImportWorkflowResponse) error { return nil }

func (c *capsuleStream) Recv() (*kagziv1.Capsule, error) {
	if len(c.parts) == 0 {
		return nil, c.fails
	}
	part := &kagziv1.Capsule{Data: c.parts[0]}
	c.parts = c.parts[1:]
	return part, nil
}

func TestAnImportLeavesNoFileBehindHoweverItEnds(t *testing.T) {
	file := exported(t, servertest.Family(), false)
	for _, c := range []struct {
		what  string
		parts [][]byte
		fails error
		want  engine.Kind
	}{
		{"all is well", [][]byte{file[:1000], file[1000:]}, io.EOF, 0},
		{"it is no capsule", [][]byte{[]byte("hello")}, io.EOF, engine.KindInvalid},
		{"the caller hangs up", [][]byte{file}, context.Canceled, 0},
		{"it is too large", [][]byte{file, make([]byte, engine.MaxCapsule-len(file)+1)}, io.EOF, engine.KindTooLarge},
	} {
		home := t.TempDir()
		t.Setenv("TMPDIR", home)
		t.Setenv("TMP", home) // on Windows
		b := &servertest.Books{}
		err := New(b, nil, Options{Trusted: true}).ImportWorkflow(
			&capsuleStream{ctx: t.Context(), parts: c.parts, fails: c.fails})
		if made := b.Changes() > 0; made != (c.what == "all is well") || made != (err == nil) || c.want != 0 &&
			engine.KindOf(err) != c.want {
			t.Errorf("%s: %v, made: %t", c.what, err, made)
		}
		if left, err := os.ReadDir(home); err != nil || len(left) > 0 {
			t.Errorf("%s: %v are left, %v", c.what, left, err)
		}
	}
}
