package main

import (
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// formOfCommand is the form of the page that does what a command does.
type formOfCommand struct {
	path   string            // empty: the command changes nothing, so it has no form
	fields map[string]string // the names of its fields by flags, where they differ
	not    []string          // flags that the page has other ways for
}

// notAsked are flags that no form has: files, the repetition of a call, and what a form asks anyway.
var notAsked = []string{"yes", "db", "request-id", "output-file", "input-file", "url", "or-update"}

func TestFormsOfferWhatTheCommandLineDoes(t *testing.T) {
	a := startAgents(t)
	admin := a.as(kagziv1.KeyRole_KEY_ROLE_ADMIN)
	made, err := a.api.CreateWorkflowSchedule(admin, &kagziv1.CreateWorkflowScheduleRequest{WorkflowType: "order",
		CronExpr: "@hourly"})
	if err == nil {
		_, err = a.api.CreateHook(admin, &kagziv1.CreateHookRequest{Name: "gh", WorkflowType: "build",
			Signature: kagziv1.HookSignature_HOOK_SIGNATURE_GITHUB})
	}
	if err != nil {
		t.Fatal(err)
	}
	schedule := "&id=" + made.GetSchedule().GetScheduleId()
	created := map[string]string{"workflow-version": "version", "max-catchup": "catchup", "tag": "tags",
		"disabled": "paused"}
	changed := maps.Clone(created)
	changed["next-fire-at"] = "next"
	space := map[string]string{"display-name": "title", "failure-queue": "failures"}
	secret := map[string]string{"secret-file": "secret"}
	forms := map[string]formOfCommand{
		"key create": {path: "create-key", fields: map[string]string{"namespace": "namespaces", "queue": "queues",
			"type": "types", "worker-id": "workers"}},
		"key revoke": {path: "revoke-key&id=any"}, "key list": {},
		"hook create": {path: "create-hook", fields: secret}, "hook rotate": {path: "rotate-hook&id=gh", fields: secret},
		"hook delete": {path: "delete-hook&id=gh"}, "hook list": {}, "hook show": {},
		"schedule create": {path: "create-schedule", fields: created},
		"schedule update": {path: "edit-schedule" + schedule, fields: changed,
			not: []string{"untag", "enabled"}}, // it has all tags, and buttons to pause and resume
		"schedule backfill": {path: "backfill" + schedule}, "schedule pause": {path: "pause-schedule" + schedule},
		"schedule resume": {path: "resume-schedule" + schedule}, "schedule delete": {path: "delete-schedule" + schedule},
		"schedule trigger": {path: "trigger" + schedule}, "schedule list": {}, "schedule show": {},
		"schedule runs": {}, "schedule preview": {},
		"namespace create":  {path: "create-namespace", fields: space},
		"namespace update":  {path: "edit-namespace&id=default", fields: space},
		"namespace enable":  {path: "enable-namespace&id=default"},
		"namespace disable": {path: "disable-namespace&id=default"},
		"namespace delete":  {path: "delete-namespace&id=default"}, "namespace list": {}, "namespace show": {},
	}
	for _, group := range commands("v0.0.0").Commands() {
		if !slices.Contains([]string{"key", "hook", "schedule", "namespace"}, group.Name()) {
			continue
		}
		for _, cmd := range group.Commands() {
			command := group.Name() + " " + cmd.Name()
			form, known := forms[command]
			if !known {
				t.Errorf("%s is compared with no form", command)
			}
			if form.path == "" {
				continue
			}
			code, page := fetched(t, a.http, "/n/default/act?do="+form.path)
			if code != http.StatusOK {
				t.Errorf("%s: the form %s = %d", command, form.path, code)
				continue
			}
			cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
				name, named := form.fields[f.Name]
				if !named {
					name = f.Name
				}
				if !slices.Contains(notAsked, f.Name) && !slices.Contains(form.not, f.Name) &&
					!strings.Contains(page, `id="f-`+name+`"`) {
					t.Errorf("%s has the flag --%s, and its form no field %q", command, f.Name, name)
				}
			})
		}
	}
}

// fetched returns an answer to a program that is no browser.
func fetched(t *testing.T, address, path string) (code int, text string) {
	t.Helper()
	answer, err := http.Get("http://" + address + path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}
