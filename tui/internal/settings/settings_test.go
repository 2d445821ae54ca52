package settings

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// filled has a value for each field of a schedule, which is not what an empty schedule has.
var filled = map[string]string{
	"type": "report", "queue": "nightly", "cron": "0 9 * * 1-5", "zone": "Europe/Berlin", "input": `{"n":3544790567247868102}`,
	"overlap": "skip", "catchup": "7", "name": "daily", "version": "v2", "jitter": "1m30s", "tags": "a=1\nb=x=y",
	"concurrency-key": "k", "concurrency-limit": "3", "concurrency-scope": "open", "on-failure": "alarm",
	"on-failure-queue": "ops", "step-timeout": "10s", "heartbeat-timeout": "20s", "execution-timeout": "2d",
	"retry-attempts": "5", "retry-initial": "500ms", "retry-coefficient": "1.5", "retry-max-interval": "1m",
	"retry-jitter": "-1", "retry-not": "Declined\nno such card", "run-retry-attempts": "-1", "run-retry-initial": "1s",
	"run-retry-coefficient": "2", "run-retry-max-interval": "1h", "run-retry-jitter": "0.5", "run-retry-not": "Fatal",
}

func TestEveryFieldOfAScheduleIsReadAsItIsWritten(t *testing.T) {
	s := &kagziv1.WorkflowSchedule{}
	if err := SetSchedule(s, filled); err != nil {
		t.Fatal(err)
	}
	is, empty := OfSchedule(s), OfSchedule(&kagziv1.WorkflowSchedule{})
	for _, f := range ScheduleFields() {
		if filled[f.Name] == "" || filled[f.Name] == empty[f.Name] {
			t.Errorf("the test has no value for %s", f.Name)
		}
		if is[f.Name] != filled[f.Name] {
			t.Errorf("%s is %q, want %q", f.Name, is[f.Name], filled[f.Name])
		}
	}
	crlf := map[string]string{}
	for name, value := range filled {
		crlf[name] = " " + strings.ReplaceAll(value, "\n", "\r\n") + " "
	}
	again := proto.CloneOf(s)
	if err := SetSchedule(again, crlf); err != nil {
		t.Fatal(err)
	}
	if _, changed := Changes(s, again); changed {
		t.Errorf("line ends of a browser change the schedule to %v", again)
	}
}

func TestAFieldThatIsEmptiedIsRemoved(t *testing.T) {
	s := &kagziv1.WorkflowSchedule{}
	if err := SetSchedule(s, filled); err != nil {
		t.Fatal(err)
	}
	for _, f := range ScheduleFields() {
		if len(f.Choices) > 0 || f.Required {
			continue
		}
		is := proto.CloneOf(s)
		if err := SetSchedule(is, map[string]string{f.Name: ""}); err != nil {
			t.Errorf("%s: %v", f.Name, err)
			continue
		}
		r, changed := Changes(s, is)
		if !changed {
			t.Errorf("an empty %s changes nothing", f.Name)
		}
		if strings.HasPrefix(f.Name, "retry-") && r.GetRunRetryPolicy() == nil {
			t.Errorf("a change of %s removes the policy of the run", f.Name)
		}
	}
	none := map[string]string{}
	for name := range filled {
		if strings.HasPrefix(name, "run-retry-") || name == "concurrency-key" || name == "concurrency-limit" {
			none[name] = ""
		}
	}
	is := proto.CloneOf(s)
	if err := SetSchedule(is, none); err != nil {
		t.Fatal(err)
	}
	r, _ := Changes(s, is)
	if r.RunRetryPolicy != nil || !proto.Equal(r.GetRetryPolicy(), s.GetRetryPolicy()) {
		t.Errorf("without a policy of the run the request is %v, want the policy of steps alone", r)
	}
	if r.ConcurrencyKey == nil || *r.ConcurrencyKey != "" || r.ConcurrencyLimit != nil || r.ConcurrencyScope != nil {
		t.Errorf("without a key the request is %v, want no limit and no scope", r)
	}
}

func TestWrongSettingsAreNamed(t *testing.T) {
	for name, value := range map[string]string{
		"input": "{", "overlap": "sometimes", "catchup": "100001", "jitter": "soon", "tags": "alone",
		"concurrency-limit": "-1", "concurrency-scope": "all", "step-timeout": "-1s", "retry-attempts": "-2",
		"retry-coefficient": "NaN", "run-retry-initial": "1us",
	} {
		label := ""
		for _, f := range ScheduleFields() {
			if f.Name == name {
				label = f.Label
			}
		}
		err := SetSchedule(&kagziv1.WorkflowSchedule{}, map[string]string{name: value})
		if err == nil || label == "" || !strings.HasPrefix(err.Error(), label+": ") {
			t.Errorf("%s = %q gives %v, want an error about %q", name, value, err, label)
		}
	}
	if err := SetSchedule(&kagziv1.WorkflowSchedule{}, map[string]string{"concurrency-limit": "2"}); err == nil {
		t.Error("a limit without a key is taken")
	}
	for name, value := range map[string]string{"retention": "-1h", "keep": "failed=soon"} {
		if err := SetNamespace(&kagziv1.Namespace{}, map[string]string{name: value}); err == nil {
			t.Errorf("%s = %q is taken", name, value)
		}
	}
	for _, keep := range []string{"lost=3d", "failed", "failed=1d,failed=2d"} {
		if err := SetNamespace(&kagziv1.Namespace{}, map[string]string{"keep": keep}); err == nil {
			t.Errorf("keep = %q is taken", keep)
		}
	}
}

func TestSettingsOfANamespaceChangeWhatDiffers(t *testing.T) {
	n := &kagziv1.Namespace{}
	values := map[string]string{"title": "Payments", "description": "cards", "retention": "30d",
		"keep": "completed=3d, failed=90d", "failures": "ops"}
	if err := SetNamespace(n, values); err != nil {
		t.Fatal(err)
	}
	for name, value := range OfNamespace(n) {
		if value != values[name] {
			t.Errorf("%s is %q, want %q", name, value, values[name])
		}
	}
	if r, changed := NamespaceChanges(n, proto.CloneOf(n)); changed {
		t.Errorf("the same settings change %v", r)
	}
	is := proto.CloneOf(n)
	if err := SetNamespace(is, map[string]string{"retention": "default", "keep": "failed=90d"}); err != nil {
		t.Fatal(err)
	}
	r, changed := NamespaceChanges(n, is)
	want := &kagziv1.UpdateNamespaceRequest{Retention: durationpb.New(0),
		Keep: &kagziv1.Keep{Keep: map[string]*durationpb.Duration{"failed": n.GetKeep()["failed"]}}}
	if !changed || !proto.Equal(r, want) {
		t.Errorf("the request is %v, want %v", r, want)
	}
}
