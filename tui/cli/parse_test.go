package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/query"
)

func TestStart_flags_become_one_request(t *testing.T) {
	o := &startOptions{}
	cmd := newStart((&session{server: &fake{}}).env(), o)
	if err := cmd.ParseFlags(
		strings.Fields(
			`--input {"a":1} --queue q --external-id e --id-reuse never --request-id r --priority -5 --tag a=1 --tag b=x=y --require gpu=
		--start-at 2026-11-21T00:00:00Z --deadline +48h --retry-attempts 5 --retry-initial 2s --retry-coefficient 1.5
		--retry-max-interval 1m --retry-jitter -1 --retry-not A --retry-not B
		--run-retry-attempts 1 --run-retry-initial 3s --run-retry-coefficient 2.5 --run-retry-max-interval 2m
		--run-retry-jitter -0.5 --run-retry-not C
		--step-timeout 90s --heartbeat-timeout 1m --execution-timeout 7d --on-failure h --on-failure-queue hq --concurrency-key c --concurrency-limit 2 --concurrency-scope open --workflow-version v2`)); err != nil {
		t.Fatal(err)
	}
	o.workflowType = "order"
	got, err := o.request(cmd.Flags().Changed, strings.NewReader(""), noon)
	if err != nil {
		t.Fatal(err)
	}
	want := &kagziv1.StartWorkflowRequest{
		WorkflowType: "order", Input: &kagziv1.Payload{
			Data: []byte(`{"a":1}`), Metadata: map[string]string{"content-type": "application/json"}}, TaskQueue: "q",
		ExternalId:      "e",
		ExternalIdReuse: kagziv1.ExternalIdReuse_EXTERNAL_ID_REUSE_NEVER, RequestId: "r", Priority: new(int32(-5)),
		Tags: map[string]string{"a": "1", "b": "x=y"}, Requirements: map[string]string{"gpu": ""},
		StartAt: timestamppb.New(noon.Add(12 * time.Hour)), DeadlineAt: timestamppb.New(noon.Add(48 * time.Hour)),
		RetryPolicy: &kagziv1.RetryPolicy{
			MaximumAttempts: 5, InitialIntervalMs: 2000, BackoffCoefficient: 1.5, MaximumIntervalMs: 60000, Jitter: -1,
			NonRetryableErrors: []string{"A", "B"}},
		RunRetryPolicy: &kagziv1.RetryPolicy{
			MaximumAttempts: 1, InitialIntervalMs: 3000, BackoffCoefficient: 2.5, MaximumIntervalMs: 120000,
			Jitter:             -0.5,
			NonRetryableErrors: []string{"C"}},
		Timeouts: &kagziv1.TimeoutConfig{
			StartToCloseTimeoutMs: 90000, HeartbeatTimeoutMs: 60000, ExecutionTimeoutMs: 7 * 86400000},
		OnFailureWorkflow: "h", OnFailureTaskQueue: "hq", ConcurrencyKey: "c", ConcurrencyLimit: 2, Version: "v2",
		ConcurrencyScope: kagziv1.ConcurrencyScope_CONCURRENCY_SCOPE_OPEN,
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Fatal(diff)
	}
}

func TestStart_without_flags_leaves_everything_to_the_server(t *testing.T) {
	o := &startOptions{}
	cmd := newStart((&session{server: &fake{}}).env(), o)
	o.workflowType = "order"
	got, err := o.request(cmd.Flags().Changed, strings.NewReader(""), noon)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&kagziv1.StartWorkflowRequest{WorkflowType: "order"}, got, protocmp.Transform()); diff != "" {
		t.Fatal(diff)
	}
}

func TestChoose_flags_and_query_become_one_filter(t *testing.T) {
	o := &listOptions{}
	cmd := newList((&session{server: &fake{}}).env(), o)
	if err := cmd.ParseFlags([]string{"-q", " parent = p or paused = true ", "--status", "failed,TIMED_OUT", "--type", "a", "--queue", "q",
		"--tag", "k=v", "--since", "24h", "--until", "2026-11-20", "--external-id", "e", "--schedule", "s", "--worker",
		"w"}); err != nil {
		t.Fatal(err)
	}
	got, err := o.choose.filter()
	if err != nil {
		t.Fatal(err)
	}
	want :=
		`(parent = p or paused = true) and status in ("FAILED", "TIMED_OUT") and type = "a" and queue = "q" and tag."k" = "v" and created >= -24h and created < 2026-11-20 and external_id = "e" and schedule = "s" and worker = "w"`
	if got != want {
		t.Fatalf("filter\n%s\nwant\n%s", got, want)
	}
}

func TestClient_flags(t *testing.T) {
	t.Run("flags override the environment, which overrides defaults", func(t *testing.T) {
		s := &session{environ: map[string]string{
			"KAGZI_ADDRESS": "env:1", "KAGZI_NAMESPACE": "env-ns", "KAGZI_API_KEY": "secret", "KAGZI_OUTPUT": "json",
			"KAGZI_TIMEOUT": "3s", "KAGZI_TLS_SERVER_NAME": "box", "KAGZI_TIME": "",
		}}
		out, _ := s.want(t, ExitOK, "wf", "list", "-n", "flag-ns")
		if r := s.server.requests[0].(*kagziv1.ListWorkflowsRequest); r.Namespace != "flag-ns" {
			t.Errorf("namespace %q", r.Namespace)
		}
		if d := s.server.dialled; d.Address != "env:1" || d.APIKey != "secret" || d.TLS == nil ||
			d.TLS.ServerName != "box" {
			t.Errorf("dialled %+v", d)
		}
		if !strings.HasPrefix(out, "{") {
			t.Errorf("stdout %q", out)
		}
	})
	t.Run("a key is not sent unencrypted to another machine", func(t *testing.T) {
		for address, own := range map[string]bool{
			"127.0.0.1:1": true, "localhost:1": true, "unix:/s": true, "10.0.0.1:1": false, "box:1": false} {
			code := map[bool]int{true: ExitOK, false: ExitUsage}[own]
			_, msg := (&session{}).want(t, code, "wf", "count", "--address", address, "--api-key", "k")
			if strings.Contains(msg, "unencrypted") == own || strings.Contains(msg, "--tls-ca") == own {
				t.Errorf("%s: stderr %q", address, msg)
			}
		}
		if _, msg := (&session{}).want(t, ExitOK, "wf", "count", "--address", "box:1", "--api-key", "k",
			"--tls"); msg != "" {
			t.Errorf("with TLS: stderr %q", msg)
		}
	})
	t.Run("values from the environment are checked and named in errors", func(t *testing.T) {
		s := &session{environ: map[string]string{"KAGZI_OUTPUT": "xml"}}
		if _, msg := s.want(t, ExitUsage, "wf", "list"); !strings.Contains(msg, "KAGZI_OUTPUT") ||
			!strings.Contains(msg, "yaml") {
			t.Errorf("stderr %q", msg)
		}
	})
}

// whyNot returns the system's error for opening a file.
func whyNot(t *testing.T, path string) string {
	t.Helper()
	var reason *os.PathError
	if _, err := os.Open(path); !errors.As(err, &reason) {
		t.Fatalf("open %s: %v, want an error", path, err)
	}
	return reason.Err.Error()
}

func TestUsage_errors(t *testing.T) {
	missing := whyNot(t, "/nonexistent")
	for line, want := range map[string]string{
		"workflw":                                                    "did you mean: kagzi workflow",
		"workflow lst":                                               "did you mean: kagzi workflow list",
		"workflow lst --status FAILED":                               "did you mean: kagzi workflow list",
		"workflow list --stauts FAILED":                              "did you mean: --status",
		"workflow list --xyzzy":                                      "see: kagzi workflow list --help",
		"workflow list -Z":                                           "see: kagzi workflow list --help",
		"workflow list extra":                                        "usage: kagzi workflow list",
		"workflow list -o xml":                                       "table, json, jsonl or yaml",
		"workflow list --limit 0":                                    "at least 1",
		"workflow list --status DONE":                                "unknown status",
		"workflow list --parent=":                                    "--parent is empty",
		"workflow count --type=":                                     "--type is empty",
		"workflow list --type ,":                                     "--type is empty",
		"workflow list --status ,FAILED":                             `--status has an empty value: ",FAILED"`,
		"workflow count --type ,order":                               `--type has an empty value: ",order"`,
		"workflow list --queue a,,b":                                 `--queue has an empty value: "a,,b"`,
		"workflow list --since tomorrow":                             `--since "tomorrow": want a time`,
		"workflow list --tag x":                                      "key=value",
		"workflow list --status faild":                               `unknown status "faild"; did you mean FAILED? want one of PENDING, `,
		"workflow show":                                              "usage: kagzi workflow show ID",
		"workflow start":                                             "the workflow type is missing",
		"workflow start a b":                                         "usage: kagzi workflow start",
		"workflow start a --input 1 --input-file x":                  "cannot be given together",
		"workflow start a --delay 1h --start-at x":                   "cannot be given together",
		"workflow start a --start-at x":                              "must be a time",
		"workflow start a --delay 5":                                 "not a duration",
		"workflow start a --delay -5s":                               "negative",
		"workflow start a --execution-timeout 999us":                 `--execution-timeout: "999us" is less than a millisecond`,
		"workflow start a --step-timeout 1ns":                        `--step-timeout: "1ns" is less than a millisecond`,
		"schedule update daily --heartbeat-timeout 500us":            "less than a millisecond",
		"schedule update daily --retry-initial 500us":                "less than a millisecond",
		"workflow start a --retry-max-interval 500us":                "less than a millisecond",
		"workflow start a --batch f --wait":                          "--batch",
		"workflow start a --input-file /nonexistent":                 missing,
		"workflow cancel":                                            "no runs given",
		"workflow cancel a -q type=b":                                "cannot be given together",
		"workflow list --json":                                       "did you mean: --output json",
		"workflow list --limit x":                                    `--limit "x": want a whole number`,
		"workflow start a --priority 99999999999":                    `--priority "99999999999": is out of range`,
		"workflow start a --retry-coefficient x":                     `--retry-coefficient "x": want a number`,
		"schedule update daily --enabled=maybe":                      `--enabled "maybe": want true or false`,
		"workflow list --until tomorrow":                             `--until "tomorrow": want a time`,
		"workflow cancel a --limit 3":                                "--limit needs -q",
		"workflow cancel -q type=b --limit 0 -y":                     "at least 1",
		"workflow cancel -q type=b --external -y":                    "external_id",
		"workflow cancel a --grace -5s":                              "negative",
		"workflow retry a --from-step s --restart":                   "cannot be given together",
		"workflow retry a --keep-all --restart":                      "cannot be given together",
		"workflow retry a --input 1":                                 "needs --restart",
		"workflow retry a b --request-id r":                          "one ID",
		"workflow retry a --restart --input {":                       "not valid JSON",
		"workflow signal a":                                          "usage: kagzi workflow signal ID NAME",
		"workflow signal a b --input @/nonexistent":                  missing,
		"workflow signal a b --payload {":                            "not valid JSON",
		"workflow explain":                                           "usage: kagzi workflow explain",
		"workflow pause":                                             "no runs given: name their ids, or a filter with -q",
		"workflow override a b --reason r":                           "one of --result and --error",
		"workflow override a b --result 1 --error x":                 "one of --result and --error",
		"workflow override a b --result 1":                           "--reason",
		"workflow override a b --result x --reason r":                "not valid JSON",
		"workflow override a b --result 1 --error-type x --reason r": "--error-type goes with --error",
		"workflow override a b --error= --reason r":                  "want a message",
		"workflow import /nonexistent":                               missing,
		"workflow show a --depth 3":                                  "--depth needs --tree",
		"workflow show a --tree --depth -1":                          "at least 0",
		"schedule create a":                                          "--cron is required",
		"schedule create --cron @daily":                              "usage: kagzi schedule create TYPE",
		"schedule create a --cron @daily --overlap never":            "allow, skip or buffer-one",
		"schedule create a --cron @daily --input {":                  "not valid JSON",
		"schedule create a --cron 0 9 * * *":                         "quote the expression",
		"schedule update daily":                                      "nothing to update",
		"schedule update daily --reason r":                           "nothing to update",
		"schedule update daily --next-fire-at x":                     "must be a time",
		"schedule preview 0 9 * * 1":                                 "quote the expression",
		"schedule preview @daily --count 0":                          "at least 1",
		"schedule preview @daily --after x":                          "must be a time",
		"schedule list --limit 0":                                    "at least 1",
		"schedule pauze x":                                           "did you mean: kagzi schedule pause",
		"namespace create":                                           "usage: kagzi namespace create NAME",
		"namespace create a --keep done=3d":                          "outcomes are completed, failed",
		"namespace create a --keep completed":                        "outcome=duration",
		"namespace create a --keep completed=3x":                     "not a duration",
		"namespace create a --keep completed=3d,completed=4d":        "given twice",
		"namespace create a --retention -1h":                         "negative",
		"namespace update a":                                         "nothing to update",
		"key create":                                                 "usage: kagzi key create NAME",
		"key create a":                                               "--role is required",
		"key create a --role root":                                   "admin, operator",
		"key create a --role unspecified":                            "admin, operator",
		"key create a --role client":                                 "--namespace is required",
		"key create a --role client -n x --queue q":                  "need --role worker",
		"key create a --role viewer -n x --worker-id w":              "need --role worker",
		"key create a --role admin --expires soon":                   "want 90d",
		"key create a --role admin --expires 2026-11-20":             "is in the past",
		"key create a --role admin -y --output-file /nonexistent/k":  whyNot(t, "/nonexistent/k"),
		"key revoke":                                "usage: kagzi key revoke",
		"audit --since soon":                        "want a time",
		"audit --keys -n x":                         "--keys and --namespace",
		"workflow list --profile none":              "none",
		"workflow list --api-key-file /nonexistent": missing,
		"check":                                            "error: COMMAND is missing\n  usage: kagzi check [flags] COMMAND [ARG...]\n",
		"workflow wait":                                    "usage: kagzi workflow wait",
		"queue lst":                                        "did you mean: kagzi queue list",
		"worker list --status asleep":                      "online, draining or offline",
		"worker list --can-run a --type b":                 "excludes --type",
		"worker list --require gpu=":                       "needs --type",
		"worker list --type b --status online":             "--status does not go with",
		"worker list --can-run a --limit 5":                "--limit does not go with",
		"completion tcsh":                                  "unknown command \"tcsh\" for kagzi completion",
		"workflow show --depth":                            "error: --depth needs a value\n",
		"workflow cancel a --grace x":                      `error: --grace: "x" is not a duration`,
		"version -x":                                       "error: unknown flag: -x\n",
		"schedule create a --cron @hourly --enabled=false": "error: unknown flag: --enabled\n  did you mean: --disabled\n",
		"schedule create a --cron @hourly --paused":        "did you mean: --disabled\n",
		"schedule update a --disabled":                     "did you mean: --enabled=false\n",
		"schedule create a --cron @hourly --time-zone UTC": "did you mean: --zone\n",
		"workflow start a --task-queue q":                  "did you mean: --queue\n",
		"workflow start --workflow-type a":                 "did you mean: TYPE, which is an argument: kagzi workflow start TYPE",
		"workflow history a":                               "did you mean: kagzi workflow show\n",
		"workflow result a":                                "did you mean: kagzi workflow wait\n",
		"namespace rm a":                                   "did you mean: kagzi namespace delete\n",
		"key delete a":                                     "did you mean: kagzi key revoke\n",
		"schedule rm a":                                    "did you mean: kagzi schedule delete\n",
		"worker stop a":                                    "did you mean: kagzi worker drain\n",
		"queue delete a":                                   "see: kagzi queue --help\n",
		"replay":                                           "did you mean: kagzi check\n",
		"workflow export a --output-file b":                "did you mean: --file\n",
		"worker list --disabled":                           "see: kagzi worker list --help\n",
		"version x": `error: unexpected argument "x"; kagzi version takes none` +
			"\n",
		"workflow show a b":                  `error: unexpected argument "b"; kagzi workflow show takes ID` + "\n",
		"workflow signal x":                  "error: NAME is missing\n  usage: kagzi workflow signal ID NAME [flags]\n  see: kagzi workflow signal --help\n",
		"workflow pin":                       "error: no runs given: name their ids, or a filter with -q\n  usage: kagzi workflow pin ID... | -q FILTER [flags]\n",
		`workflow pin -q type=b`:             "error: confirmation needs a terminal\n  -y skips the confirmation; list the selected runs first: kagzi workflow list -q 'type=b'\n",
		"schedule pause":                     "error: ID or NAME is missing\n",
		"schedule preview":                   "error: EXPR is missing\n",
		"schedule update a --cron 0 9 * * *": "quote the expression",
		"check --timeout 3s":                 "error: COMMAND is missing\n",
		"help foo":                           "error: unknown command \"foo\" for kagzi\n",
		"help workflow lst":                  "did you mean: kagzi workflow list",
	} {
		_, msg := (&session{}).want(t, ExitUsage, strings.Fields(line)...)
		if !strings.HasPrefix(msg, "error: ") || !strings.Contains(msg, want) {
			t.Errorf("kagzi %s: stderr %q lacks %q", line, msg, want)
		}
	}
}

func TestA_choice_may_be_written_as_tables_show_it(t *testing.T) {
	s := &session{server: &fake{}}
	s.want(t, ExitOK, "worker", "list", "--status", "ONLINE", "-o", "JSON")
	if got := s.server.requests[0].(*kagziv1.ListWorkersRequest).GetStatusFilter(); got !=
		kagziv1.WorkerStatus_WORKER_STATUS_ONLINE {
		t.Errorf("asked for workers that are %v", got)
	}
}

func TestA_wrong_filter_is_shown_with_a_caret(t *testing.T) {
	_, msg := (&session{}).want(t, ExitUsage, "wf", "list", "-q", "type = \"注\x1b\" and statu = 1")
	want := "error: -q: position 17: did you mean status? expected a field of runs: " +
		strings.Join(query.Runs.Names(), ", ") + ", found \"statu\"\n" +
		"  type = \"注\\x1b\" and statu = 1\n" +
		"                      ^\n"
	if diff := cmp.Diff(want, msg); diff != "" {
		t.Fatal(diff)
	}
}

func TestWrong_JSON_is_shown_with_its_place(t *testing.T) {
	for input, want := range map[string]string{
		`{"a":}`:          "line 1, column 6:",
		"{\n  \"é\" 1\n}": "line 2, column 7:",
		`{"a":1`:          "line 1, column 7:",
		`1 2`:             "line 1, column 3:",
		"\"\xff\"":        "line 1, column 2: not UTF-8",
	} {
		_, msg := (&session{}).want(t, ExitUsage, "wf", "start", "a", "--input", input)
		if !strings.Contains(msg, "--input is not valid JSON at "+want) || !strings.Contains(msg, "^") {
			t.Errorf("%q: stderr %q, want %q", input, msg, want)
		}
	}
	for _, input := range []string{"", " \n"} {
		if _, msg := (&session{stdin: input}).want(t, ExitUsage, "wf", "start", "a", "--input", "-"); !strings.Contains(
			msg, "--input is empty; give JSON") {
			t.Errorf("%q: stderr %q", input, msg)
		}
	}
	_, msg := (&session{stdin: "[1,"}).want(t, ExitUsage, "wf", "start", "a", "--input-file", "-")
	if !strings.Contains(msg, "--input-file is not valid JSON at line 1, column 4:") {
		t.Errorf("stderr %q", msg)
	}
}

func TestVersion_is_a_flag_too(t *testing.T) {
	command, _ := (&session{}).want(t, ExitOK, "version")
	if flag, _ := (&session{}).want(t, ExitOK, "--version"); flag != command {
		t.Errorf("--version prints %q, the command %q", flag, command)
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{}, {"help"}, {"help", "workflow", "list"}, {"--help"}, {"workflow"},
		{"wf", "list", "--help"}, {"completion"}} {
		if out, msg := (&session{}).want(t, ExitOK, args...); !strings.Contains(out, "Usage:") || msg != "" {
			t.Errorf("%v: stdout %q, stderr %q", args, out, msg)
		}
	}
}

func TestLarge_payloads_are_warned_about(t *testing.T) {
	const id = "01936b2e-0000-7000-8000-000000000003"
	dir := t.TempDir()
	file := func(name string, bytes int) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(`"`+strings.Repeat("x", bytes-2)+`"`), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	fits, large := file("fits", largePayload), file("large", largePayload+1)
	for command, flag := range map[string]string{
		"wf start order": "--input-file=", "wf signal " + id + " approval": "--input=@",
		"wf retry --restart " + id:                   "--input=@",
		"wf override " + id + " charge --reason why": "--result=@",
		"schedule create report --cron @daily":       "--input-file=", "schedule update daily": "--input-file=",
	} {
		for path, want := range map[string]bool{fits: false, large: true} {
			_, msg := (&session{server: sampleServer()}).want(t, ExitOK, append(strings.Fields(command), flag+path)...)
			if got := strings.Count(msg, "is large, 256.0 KiB"); (got == 1) != want {
				t.Errorf("%s with %s: stderr %q", command, filepath.Base(path), msg)
			}
		}
	}
	line := `{"input":"` + strings.Repeat("x", largePayload) + `"}` + "\n"
	_, msg := (&session{server: sampleServer(), stdin: line + `{"input":1}` + "\n" + line}).want(
		t, ExitOK, "wf", "start", "order", "--batch", "-")
	if !strings.Contains(msg,
		"warning: 2 of the inputs are large, more than 256.0 KiB: each is stored and sent whole") {
		t.Errorf("a batch: stderr %q", msg)
	}
}
