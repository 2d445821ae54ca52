package cli

import (
	"flag"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kagzi/kagzi/engine/lab/long"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/widget/widgettest"
)

// poison sets every string in a message to s, at any depth.
func poison(m protoreflect.Message, s string) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		value := protoreflect.ValueOfString(s)
		switch {
		case f.IsMap() && f.MapValue().Kind() == protoreflect.StringKind:
			m.Mutable(f).Map().Set(value.MapKey(), value)
		case f.IsMap() && f.MapValue().Kind() == protoreflect.MessageKind:
			m.Mutable(f).Map().Mutable(value.MapKey())
		case f.IsMap() && f.MapKey().Kind() == protoreflect.StringKind:
			m.Mutable(f).Map().Set(value.MapKey(), protoreflect.ValueOfInt64(7))
		case f.IsList() && f.Kind() == protoreflect.StringKind:
			m.Mutable(f).List().Append(value)
		case f.IsList() || f.IsMap():
		case f.Kind() == protoreflect.StringKind:
			m.Set(f, value)
		case f.Kind() == protoreflect.BytesKind:
			m.Set(f, protoreflect.ValueOfBytes([]byte(s)))
		case f.Kind() == protoreflect.MessageKind && f.Message().ParentFile().Package() == "kagzi.v1":
			poison(m.Mutable(f).Message(), s)
		}
	}
}

func poisoned[M proto.Message](m M, s string) M {
	poison(m.ProtoReflect(), s)
	return m
}

// assertHarmless allows only printable characters and newlines.
func assertHarmless(t *testing.T, command, s, out string) {
	t.Helper()
	if !utf8.ValidString(out) {
		t.Errorf("%s: %q came out as invalid UTF-8: %q", command, s, out)
	}
	for _, r := range out {
		if r != '\n' && (unicode.IsControl(r) ||
			unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Bidi_Control, unicode.Variation_Selector)) {
			t.Errorf("%s: %q came out with %U:\n%q", command, s, r, out)
			return
		}
	}
}

var allHostile = flag.Bool("hostile.all", false, "every command meets every hostile text (some, in turns)")

// TestNo_control_character_of_user_text_reaches_the_output gives each command that shows runs every
// other hostile text, and each other command every sixth in turn: of all texts with
// KAGZI_TEST_LONG, otherwise of one in eight. With -hostile.all each command gets every text.
func TestNo_control_character_of_user_text_reaches_the_output(t *testing.T) {
	corpus := widgettest.Hostile()
	names := slices.Sorted(maps.Keys(corpus))
	for _, i := range hostileShare(t, len(names)) {
		s := corpus[names[i]]
		large := len(s) > 10_000
		other := []string{"json", "jsonl", "yaml"}[i%3] // the encodings have their own tests
		run := poisoned(&kagziv1.Workflow{Status: completed}, s)
		commands := [][]string{{"wf", "list"}, {"wf", "show", "a"}}
		if !large {
			commands = append(inTurn(reads(s), 2, i), inTurn(changes(s), 6, i)...)
		}
		if i/2%2 == 1 {
			run.Status, run.Error, run.Note = kagziv1.WorkflowStatus_WORKFLOW_STATUS_SLEEPING, nil, ""
		}
		server := poisonedServer(run, s)
		for _, args := range commands {
			formats := []string{"table"}
			if !large && len(args) > 1 && (args[1] == "show" || args[1] == "watch") {
				formats = append(formats, other)
			}
			for _, format := range formats {
				server.streams = []*stream{{events: []*kagziv1.WatchWorkflowEvent{
					{Workflow: run, Steps: server.stepList}, {Workflow: &kagziv1.Workflow{Status: completed}}},
					end: io.EOF}}
				out, msg, _ := (&session{server: server}).run(
					t, append(append([]string{}, args[0]), append([]string{"-o", format}, args[1:]...)...)...)
				assertHarmless(t, strings.Join(args[:1], " ")+" "+format, s, out)
				assertHarmless(t, strings.Join(args[:1], " ")+" stderr", s, msg)
			}
		}
	}
}

// hostileShare returns the numbers of the texts to try.
func hostileShare(t *testing.T, texts int) []int {
	numbers := make([]int, texts)
	for i := range numbers {
		numbers[i] = i
	}
	if *allHostile {
		return numbers
	}
	return long.Share(t, numbers, 8)
}

// inTurn returns one of every `of` commands, others for the next number.
func inTurn(commands [][]string, of, number int) (some [][]string) {
	if *allHostile {
		return commands
	}
	for i, args := range commands {
		if (i+number)%of == 0 {
			some = append(some, args)
		}
	}
	return some
}

// poisonedServer has s wherever a server has text.
func poisonedServer(run *kagziv1.Workflow, s string) *fake {
	return &fake{
		runs: []*kagziv1.Workflow{run}, stepList: []*kagziv1.Step{
			poisoned(&kagziv1.Step{}, s), {RunId: s, Name: s, Output: run.Output}},
		workers:    []*kagziv1.Worker{poisoned(&kagziv1.Worker{}, s)},
		queues:     []*kagziv1.QueueDepth{poisoned(&kagziv1.QueueDepth{}, s)},
		info:       poisoned(&kagziv1.GetServerInfoResponse{}, s),
		signals:    []*kagziv1.Signal{poisoned(&kagziv1.Signal{}, s)},
		audit:      []*kagziv1.AuditEvent{poisoned(&kagziv1.AuditEvent{}, s)},
		explained:  poisoned(&kagziv1.ExplainWorkflowResponse{}, s),
		namespaces: []*kagziv1.Namespace{poisoned(&kagziv1.Namespace{}, s)},
		keys:       []*kagziv1.Key{poisoned(&kagziv1.Key{}, s)}, me: poisoned(&kagziv1.WhoAmIResponse{}, s),
		health:    poisoned(&kagziv1.HealthCheckResponse{}, s),
		schedules: []*kagziv1.WorkflowSchedule{poisoned(&kagziv1.WorkflowSchedule{Enabled: true}, s)},
		progress:  []*kagziv1.BulkWorkflowsProgress{poisoned(&kagziv1.BulkWorkflowsProgress{Failed: 1}, s)},
	}
}

// reads are commands that show runs, or that s makes invalid.
func reads(s string) [][]string {
	return [][]string{
		{"wf", "list"}, {"wf", "list", "--time", "iso"}, {"wf", "show", s}, {"wf", "show", s, "--payloads", "full"},
		{"wf", "show", s, "--tree"}, {"wf", "wait", s}, {"wf", "watch", s},
		{"wf", "list", "--type", s}, {"wf", "list", "-q", "type = " + s}, {"wf", "start", "a", "--input", s}, {"wf", s},
		{s}, {"wf", "list", "--" + s},
	}
}

// changes are the other commands, with s where possible.
func changes(s string) [][]string {
	return [][]string{
		{"worker", "list"}, {"worker", "show", s}, {"worker", "drain", s}, {"worker", "offline", s}, {"queue", "list"},
		{"queue", "show", s}, {"version", "--server"},
		{"wf", "cancel", s}, {"wf", "cancel", s, "--grace", "1s"}, {"wf", "explain", s}, {"wf", "pause", s, "no" + s},
		{"wf", "pin", s}, {"wf", "retry", s}, {"wf", "signal", s, s},
		{"wf", "override", s, s, "--error", s, "--reason", s}, {"wf", "terminate", "-q", "status = COMPLETED", "-y"},
		{"wf", "retry", "-q", "status = COMPLETED", "--from-step", s, "-y"},
		{"wf", "cancel", "-q", "type = " + strconv.Quote(s), "-y"}, {"wf", "export", s, "-f", s + "/none/" + s},
		{"wf", "import", "none" + s},
		{"schedule", "list"}, {"schedule", "show", s}, {"schedule", "runs", s}, {"schedule", "pause", s},
		{"schedule", "delete", s, "no" + s}, {"schedule", "trigger", s},
		{"schedule", "preview", s, "--zone", s}, {"schedule", "update", s, "--queue", s},
		{"schedule", "create", s, "--cron", s},
		{"namespace", "list"}, {"namespace", "show", s}, {"namespace", "disable", s},
		{"namespace", "create", s, "--keep", s}, {"namespace", "update", s, "--description", s}, {"check", "none" + s},
		{"key", "list", "--revoked"}, {"key", "create", s, "--role", s}, {"key", "create", s, "--role", "admin", "-y"},
		{"key", "create", s, "--role", "admin", "-y", "--expires", s}, {"key", "revoke", s, "-y"},
		{"audit"}, {"audit", "--since", s}, {"audit", "--subject", s}, {"doctor"}, {"profile", "show", s},
		{"profile", "show", "--address", s},
	}
}

func TestNo_control_character_of_an_error_reaches_the_output(t *testing.T) {
	for _, s := range widgettest.Hostile() {
		st := status.New(codes.NotFound, strings.ToValidUTF8(s, "?"))
		if with, err := st.WithDetails(&kagziv1.ErrorDetail{
			Subject: strings.ToValidUTF8(s, "?"), SubjectId: "x",
			Metadata: map[string]string{"field": strings.ToValidUTF8(s, "?")}}); err == nil {
			st = with
		}
		server := &fake{fail: map[string]error{"ListWorkflows": st.Err()}}
		_, msg := (&session{server: server}).want(t, ExitNotFound, "wf", "list")
		assertHarmless(t, "wf list", s, msg)
	}
}
