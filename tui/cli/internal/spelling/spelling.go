// Package spelling rewrites server messages about request fields in the words of the command line.
package spelling

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kagzi/kagzi/proto/query"
)

// spellings maps request fields to the flags or arguments that set them, if the flag is not the
// field's name with dashes. If several are listed, the one that was given is used.
var spellings = map[string][]string{
	"workflow_type": {"TYPE", "--type"}, "workflow_types": {"--type"}, "task_queue": {"NAME", "--queue"},
	"task_queues":         {"--queue"},
	"on_failure_workflow": {"--on-failure"}, "on_failure_task_queue": {"--on-failure-queue"},
	"failure_task_queue": {"--failure-queue"},
	"version":            {"--workflow-version"}, "external_id": {"--external-id", "ID"},
	"external_id_reuse": {"--id-reuse"},
	"start_at":          {"--delay", "--start-at"}, "start_in": {"--delay"}, "deadline_at": {"--deadline"},
	"created_after": {"--since"}, "created_before": {"--until"},
	"input": {"--input-file", "--input"}, "payload": {"--input", "--payload"}, "output": {"--result"}, "data": {"FILE"},
	"tags": {"--tag"}, "requirements": {"--require"}, "statuses": {"--status"}, "status_filter": {"--status"},
	"run_id": {"ID"}, "worker_id": {"ID", "--worker"}, "schedule_id": {"ID|NAME", "--schedule"}, "id": {"ID|NAME"},
	"parent_run_id": {"--parent"},
	"name":          {"--name", "NAME"}, "signal_name": {"NAME"}, "step_name": {"STEP"},
	"cron_expr":      {"--cron", "EXPR"},
	"time_zone":      {"--zone"},
	"overlap_policy": {"--overlap"}, "expires_at": {"--expires"}, "namespaces": {"--namespace"}, "queues": {"--queue"},
	"types":            {"--type"},
	"maximum_attempts": {"--retry-attempts"}, "initial_interval_ms": {"--retry-initial"},
	"backoff_coefficient": {"--retry-coefficient"},
	"maximum_interval_ms": {"--retry-max-interval"}, "jitter": {"--retry-jitter"},
	"non_retryable_errors":      {"--retry-not"},
	"start_to_close_timeout_ms": {"--step-timeout"}, "heartbeat_timeout_ms": {"--heartbeat-timeout"},
	"execution_timeout_ms": {"--execution-timeout"},
}

// Typed returns what was typed for a request field: "--queue" for task_queue, "TYPE" for an
// argument. It returns the field itself if the command has no flag or argument for it.
func Typed(cmd *cobra.Command, field string) string {
	parts := fieldParts(field)
	if len(parts) == 0 {
		return field
	}
	taken, _, _ := Arguments(cmd)
	if parts[0] == "namespace" && len(taken) > 0 && cmd.Parent().Name() == "namespace" {
		return strings.TrimSuffix(taken[0], "...")
	}
	found := ""
	for _, name := range []string{parts[len(parts)-1], parts[0]} {
		for _, spelling := range append(slices.Clone(spellings[name]), "--"+strings.ReplaceAll(name, "_", "-")) {
			if parts[0] == "run_retry_policy" && strings.HasPrefix(spelling, "--retry-") {
				spelling = "--run-" + strings.TrimPrefix(spelling, "--")
			}
			flag, isFlag := strings.CutPrefix(spelling, "--")
			switch f := cmd.Flags().Lookup(flag); {
			case isFlag && f != nil && f.Changed:
				return spelling
			case isFlag && f != nil && found == "":
				found = spelling
			case !isFlag && slices.ContainsFunc(taken, func(name string) bool {
				return strings.TrimSuffix(name, "...") == spelling
			}):
				return spelling
			}
		}
	}
	if found == "" {
		return field
	}
	return found
}

// otherFlags maps flags to the flag that another command has for the same or the opposite.
var otherFlags = map[string][]string{
	"enabled": {"--disabled"}, "disabled": {"--enabled=false"}, "paused": {"--disabled", "--enabled=false"},
	"file": {"--input-file", "--output-file"}, "output-file": {"--file"},
}

// otherCommands maps command names of other tools to ours. The first that the group has is used.
var otherCommands = map[string][]string{
	"get": {"show"}, "describe": {"show"}, "history": {"show"}, "inspect": {"show"}, "status": {"show", "doctor"},
	"why":    {"explain"},
	"result": {"wait"}, "follow": {"watch"}, "tail": {"watch"}, "run": {"start", "trigger"}, "new": {"create", "start"},
	"add":     {"create"},
	"execute": {"start"}, "fire": {"trigger"}, "edit": {"update"}, "set": {"update"}, "abort": {"cancel"},
	"kill": {"terminate", "offline"},
	"stop": {"cancel", "pause", "drain"}, "delete": {"revoke"},
	"remove": {"delete", "revoke", "offline"},
	"rm":     {"delete", "revoke", "offline"}, "ui": {"tui"}, "start": {"server"}, "replay": {"check"},
}

// OtherCommand returns a group's command for a name used elsewhere, or "".
func OtherCommand(group *cobra.Command, name string) string {
	for _, other := range otherCommands[name] {
		if slices.ContainsFunc(group.Commands(), func(c *cobra.Command) bool {
			return c.Name() == other && !c.Hidden
		}) {
			return other
		}
	}
	return ""
}

// OtherName returns a command's flag for a name used by other commands or for a request field, or
// "".
func OtherName(cmd *cobra.Command, name string) string {
	for _, other := range otherFlags[name] {
		flag, _, _ := strings.Cut(strings.TrimPrefix(other, "--"), "=")
		if cmd.Flags().Lookup(flag) != nil {
			return other
		}
	}
	field := strings.ReplaceAll(name, "-", "_")
	switch spelling := Typed(cmd, field); {
	case spelling == field:
		return ""
	case strings.HasPrefix(spelling, "--"):
		return spelling
	default:
		return spelling + ", which is an argument: " + cmd.UseLine()
	}
}

// asking maps request fields to the filter fields that select by them.
var asking = map[string][]string{
	"statuses": {"status"}, "status_filter": {"status"}, "workflow_type": {"type"}, "workflow_types": {"type"},
	"task_queue": {"queue"}, "task_queues": {"queue"}, "created_after": {"created"}, "created_before": {"created"},
	"tags": {"tag."}, "search": {"id", "external_id", "search"}, "schedule_id": {"schedule"},
	"parent_run_id": {"parent"}, "worker_id": {"worker"},
}

// InFilter returns the filter field for a request field and its position in the query; below 0 if
// it is not in the query.
func InFilter(text, field string) (name string, place int) {
	q, err := query.Runs.Parse(text, time.Time{})
	if err != nil {
		return "", -1
	}
	for _, part := range fieldParts(field) {
		for _, asks := range asking[part] {
			if at := q.Place(asks); at >= 0 {
				return strings.TrimSuffix(asks, "."), at
			}
		}
	}
	return "", -1
}

// fieldParts returns the names in the path of a field.
func fieldParts(field string) []string {
	return strings.FieldsFunc(field, func(r rune) bool { return r == '.' || r == ' ' || r == '[' })
}

// fieldName matches a field name in a server's message. Names of one word cannot be told from text.
var fieldName = regexp.MustCompile(`\b[a-z]+(_[a-z]+)+\b`)

// Retyped rewrites a server's message about a field in the words of the command line, except quoted
// text.
func Retyped(message, field string, typed func(string) string) string {
	message, begins := strings.CutPrefix(message, field+":")
	message = strings.TrimPrefix(message, " Invalid "+field+":") // the name is repeated
	parts := strings.Split(message, `"`)
	for i := 0; i < len(parts); i += 2 {
		parts[i] = fieldName.ReplaceAllStringFunc(parts[i], typed)
	}
	message = strings.Join(parts, `"`)
	if begins {
		return typed(field) + ":" + message
	}
	return message
}

// Arguments returns the arguments in a command's usage line, how many are required, and whether the
// last may be repeated.
func Arguments(cmd *cobra.Command) (names []string, required int, open bool) {
	for _, word := range strings.Fields(cmd.Use)[1:] {
		if word == "[flags]" { // the place of flags before the arguments
			continue
		}
		name := strings.Trim(word, "[]")
		if strings.HasPrefix(name, "-") || name == "|" {
			break
		}
		if names = append(names, name); name == word {
			required++
		}
		open = strings.HasSuffix(name, "...")
	}
	return names, required, open
}
