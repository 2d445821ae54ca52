package settings

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/query"
	"github.com/kagzi/kagzi/tui/render"
)

// outcomes are the final statuses that may have a retention of their own.
var outcomes = []string{"completed", "failed", "cancelled", "timed_out", "terminated"}

// Labels that errors name.
const (
	keptLabel   = "Keep runs for"
	keptByLabel = "Keep by outcome"
	limitLabel  = "Concurrency limit"
)

// NamespaceFields are the fields of a namespace except its name.
var NamespaceFields = []Field{
	{Name: "title", Label: "Title", Kind: "text", Note: "shown beside the name"},
	{Name: "description", Label: "Description", Kind: "text"},
	{Name: "retention", Label: keptLabel, Kind: "text",
		Note: "ended ones, such as 720h or 30d; empty means the server's setting"},
	{Name: "keep", Label: keptByLabel, Kind: "text",
		Note: "such as completed=3d, failed=90d; also cancelled, timed_out, terminated"},
	{Name: "failures", Label: "Failures to", Kind: "text",
		Note: "queue for failure handler runs if no online worker serves the handler"},
}

// OfNamespace returns the values of a namespace's fields.
func OfNamespace(n *kagziv1.Namespace) map[string]string {
	return map[string]string{"title": n.GetDisplayName(), "description": n.GetDescription(),
		"retention": keptText(n.GetRetention()), "keep": keptByText(n.GetKeep()), "failures": n.GetFailureTaskQueue()}
}

// SetNamespace sets the fields that have a value. Errors name the label of the field.
func SetNamespace(n *kagziv1.Namespace, values map[string]string) error {
	for name, to := range map[string]*string{"title": &n.DisplayName, "description": &n.Description,
		"failures": &n.FailureTaskQueue} {
		if value, has := values[name]; has {
			*to = trimmed(value)
		}
	}
	if value, has := values["retention"]; has {
		d, err := kept(trimmed(value))
		if err != nil {
			return fmt.Errorf("%s: %w", keptLabel, err)
		}
		if n.Retention = nil; d != 0 {
			n.Retention = durationpb.New(d)
		}
	}
	if value, has := values["keep"]; has {
		keep, err := keptBy(trimmed(value))
		if err != nil {
			return fmt.Errorf("%s: %w", keptByLabel, err)
		}
		n.Keep = keep
	}
	return nil
}

// NamespaceChanges returns the request that makes a namespace what it is to be.
func NamespaceChanges(was, is *kagziv1.Namespace) (r *kagziv1.UpdateNamespaceRequest, changed bool) {
	r = &kagziv1.UpdateNamespaceRequest{}
	for _, text := range []struct {
		was, is string
		to      **string
	}{{was.GetDisplayName(), is.GetDisplayName(), &r.DisplayName},
		{was.GetDescription(), is.GetDescription(), &r.Description},
		{was.GetFailureTaskQueue(), is.GetFailureTaskQueue(), &r.FailureTaskQueue}} {
		if text.was != text.is {
			*text.to, changed = new(text.is), true
		}
	}
	if d := is.GetRetention().AsDuration(); d != was.GetRetention().AsDuration() {
		r.Retention, changed = durationpb.New(d), true // zero restores the server's setting
	}
	if keptByText(was.GetKeep()) != keptByText(is.GetKeep()) {
		r.Keep, changed = &kagziv1.Keep{Keep: is.GetKeep()}, true
	}
	return r, changed
}

// kept reads a retention; 0 for the server's setting.
func kept(text string) (time.Duration, error) {
	if text == "" || text == "default" {
		return 0, nil
	}
	d, err := query.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, errors.New("want a time such as 720h or 30d")
	}
	return d, nil
}

// keptBy reads retentions by outcome.
func keptBy(text string) (map[string]*durationpb.Duration, error) {
	keep := map[string]*durationpb.Duration{}
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' }) {
		outcome, length, found := strings.Cut(part, "=")
		if !found || !slices.Contains(outcomes, outcome) || keep[outcome] != nil {
			return nil, fmt.Errorf("want each of %s at most once, as in failed=90d", strings.Join(outcomes, ", "))
		}
		d, err := kept(length)
		if err != nil {
			return nil, err
		}
		if d != 0 {
			keep[outcome] = durationpb.New(d)
		}
	}
	return keep, nil
}

func keptText(d *durationpb.Duration) string {
	if d.AsDuration() == 0 {
		return ""
	}
	return render.Days(d.AsDuration())
}

func keptByText(keep map[string]*durationpb.Duration) string {
	var parts []string
	for _, outcome := range slices.Sorted(maps.Keys(keep)) {
		parts = append(parts, outcome+"="+keptText(keep[outcome]))
	}
	return strings.Join(parts, ", ")
}
