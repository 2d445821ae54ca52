package agq

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/kagzi/kagzi/engine"
)

// Limits of plans. AGW refuses what exceeds them and exits, so a plan that one worker cannot run would end all
// of them in turn.
const (
	maxTasks       = 100
	maxPlanArgs    = 256
	maxArgBytes    = 4096
	maxTaskSeconds = 86_400
	maxTextBytes   = 255 // of a description in lists
	maxIDBytes     = 128
	defaultTimeout = time.Hour
)

// task is a task of a plan.
type task struct {
	Number  int       `json:"task_number"`
	Command string    `json:"command"`
	Args    *[]string `json:"args,omitempty"`
	Timeout *float64  `json:"timeout_secs,omitempty"`
	From    *int      `json:"input_from_task,omitempty"`
}

// plan is a plan that was found to be one that AGW runs.
type plan struct {
	id          string
	description string
	tasks       []task
	timeout     time.Duration
	text        []byte // normalised: without nulls, and with its id
}

// jobInput is the input of a job's run.
type jobInput struct {
	ActionID string          `json:"action_id"`
	PlanID   string          `json:"plan_id"`
	Verify   string          `json:"verify,omitempty"` // the tool or unit that an operator asks about
	Seconds  int64           `json:"timeout_secs"`
	Input    json.RawMessage `json:"input"`
	Plan     json.RawMessage `json:"plan"`
}

// inputOf reads the input of a job's run.
func inputOf(data []byte) (in jobInput, err error) {
	if err = json.Unmarshal(data, &in); err == nil && (in.PlanID == "" || len(in.Plan) == 0) {
		err = fmt.Errorf("it has no plan")
	}
	return in, err
}

func (in *jobInput) timeout() time.Duration {
	return cmp.Or(time.Duration(in.Seconds)*time.Second, defaultTimeout)
}

// readPlan reads and checks a plan. The text of an error names task and field.
func readPlan(data string) (*plan, string) {
	if n := len(data); n > engine.MaxPayload/4 {
		return nil, fmt.Sprintf("the plan has %d bytes, at most %d are allowed", n, engine.MaxPayload/4)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(data), &fields); err != nil {
		return nil, jsonError(err)
	}
	if fields == nil {
		return nil, "it must be an object, got null"
	}
	p := &plan{timeout: defaultTimeout}
	if text := stringField(fields, "plan_id", &p.id); text != "" {
		return nil, text
	}
	if text := stringField(fields, "plan_description", &p.description); text != "" {
		return nil, text
	}
	if text := p.readTimeout(fields); text != "" {
		return nil, text
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(fields["tasks"], &raw); err != nil || len(raw) == 0 || len(raw) > maxTasks {
		return nil, fmt.Sprintf("tasks must be a list of 1 to %d tasks", maxTasks)
	}
	for i, one := range raw {
		t, text := readTask(i+1, one)
		if text != "" {
			return nil, fmt.Sprintf("task %d: %s", i+1, text)
		}
		p.tasks = append(p.tasks, *t)
	}
	if n := len(p.commands()); n > engine.MaxLabels {
		return nil, fmt.Sprintf("tasks use %d different commands, at most %d are allowed", n, engine.MaxLabels)
	}
	return p, p.normalise(fields)
}

// stringField reads an optional text.
func stringField(fields map[string]json.RawMessage, name string, into *string) string {
	raw, has := fields[name]
	if !has || string(raw) == "null" {
		return ""
	}
	if json.Unmarshal(raw, into) != nil {
		return name + " must be text"
	}
	return ""
}

// readTimeout reads how long a job of the plan may take.
func (p *plan) readTimeout(fields map[string]json.RawMessage) string {
	raw, has := fields["job_timeout_secs"]
	if !has || string(raw) == "null" {
		return ""
	}
	var seconds int64
	if json.Unmarshal(raw, &seconds) != nil || seconds < 1 || seconds > 7*maxTaskSeconds {
		return fmt.Sprintf("job_timeout_secs must be a whole number from 1 to %d", 7*maxTaskSeconds)
	}
	p.timeout = time.Duration(seconds) * time.Second
	return ""
}

// normalise gives the plan its id and its text.
func (p *plan) normalise(fields map[string]json.RawMessage) string {
	tasks, err := json.Marshal(p.tasks)
	if err != nil {
		return err.Error()
	}
	fields["tasks"] = tasks
	delete(fields, "plan_id")
	for name, raw := range fields {
		if string(raw) == "null" {
			delete(fields, name)
		}
	}
	if p.id == "" { // the same plan has the same id
		text, err := json.Marshal(fields)
		if err != nil {
			return err.Error()
		}
		sum := sha256.Sum256(text)
		p.id = "plan_" + hex.EncodeToString(sum[:8])
	}
	if text := checkID("plan_id", p.id); text != "" {
		return text
	}
	if fields["plan_id"], err = json.Marshal(p.id); err == nil {
		p.text, err = json.Marshal(fields)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// checkID returns what is wrong about an id that a client chose; empty: nothing.
func checkID(field, id string) string {
	if id == "" || len(id) > maxIDBytes {
		return fmt.Sprintf("%s must have 1 to %d characters, got %d", field, maxIDBytes, len(id))
	}
	if err := engine.CheckName(field, id); err != nil {
		return err.Error()
	}
	if strings.ContainsAny(id, ":/") {
		return field + " must not hold a colon or a slash"
	}
	return ""
}

// readTask reads and checks the n-th task of a plan.
func readTask(n int, raw json.RawMessage) (*task, string) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return nil, "it must be an object"
	}
	if string(fields["args"]) == "null" {
		return nil, "args must be a list of texts, got null; leave it out if there are none"
	}
	var t task
	if err := json.Unmarshal(raw, &t); err != nil {
		return nil, jsonError(err)
	}
	switch {
	case t.Number != n:
		return nil, fmt.Sprintf("task_number must be %d: tasks are numbered from 1 without gaps, got %d", n, t.Number)
	case t.Command == "":
		return nil, "command must not be empty"
	case len(t.Command) > maxTool:
		return nil, fmt.Sprintf("command has %d bytes, at most %d are allowed", len(t.Command), maxTool)
	case t.From != nil && (*t.From < 1 || *t.From >= n):
		return nil, fmt.Sprintf("input_from_task must be the number of an earlier task, got %d", *t.From)
	case t.Timeout != nil && (*t.Timeout < 1 || *t.Timeout > maxTaskSeconds || *t.Timeout != float64(int(*t.Timeout))):
		return nil, fmt.Sprintf("timeout_secs must be a whole number from 1 to %d", maxTaskSeconds)
	}
	if err := engine.CheckRequirements("command", map[string]string{toolPrefix + t.Command: ""}); err != nil {
		return nil, "command may hold only printable ASCII other than = and ,"
	}
	if text := checkWord("command", t.Command); text != "" {
		return nil, text
	}
	if t.Args == nil {
		return &t, ""
	}
	if len(*t.Args) > maxPlanArgs {
		return nil, fmt.Sprintf("args has %d entries, at most %d are allowed", len(*t.Args), maxPlanArgs)
	}
	for i, arg := range *t.Args {
		if text := checkWord(fmt.Sprintf("args[%d]", i), placeholder.ReplaceAllString(arg, "x")); text != "" {
			return nil, text
		}
		if len(arg) > maxArgBytes {
			return nil, fmt.Sprintf("args[%d] has %d bytes, at most %d are allowed", i, len(arg), maxArgBytes)
		}
	}
	return &t, ""
}

// checkWord returns why AGW would refuse a command or an argument; empty: it would not.
func checkWord(field, word string) string {
	if len(word) > maxArgBytes {
		return fmt.Sprintf("%s has %d bytes, at most %d are allowed", field, len(word), maxArgBytes)
	}
	if i := strings.IndexAny(word, "&|;$`"); i >= 0 {
		return fmt.Sprintf("%s must not hold %q: commands are not run by a shell", field, word[i])
	}
	if strings.HasPrefix(word, "..") || strings.Contains(word, "../") {
		return field + " must not begin with .. or hold ../"
	}
	for _, r := range word {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return fmt.Sprintf("%s must not hold the character %U", field, r)
		}
	}
	return ""
}

// placeholder stands for a field of the input in an argument.
var placeholder = regexp.MustCompile(`\{\{\s*input\.([^{}\s]+)\s*\}\}`)

// commands returns the commands of a plan, each once.
func (p *plan) commands() []string {
	var all []string
	for _, t := range p.tasks {
		all = append(all, t.Command)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// checkInput returns why AGW would refuse a job with this input; empty: it would not.
func (p *plan) checkInput(raw json.RawMessage) string {
	var fields map[string]any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&fields); err != nil || fields == nil {
		return "must be an object"
	}
	for _, t := range p.tasks {
		if t.Args == nil {
			continue
		}
		for i, arg := range *t.Args {
			refusal := ""
			filled := placeholder.ReplaceAllStringFunc(arg, func(found string) string {
				name := placeholder.FindStringSubmatch(found)[1]
				value, has := fields[name]
				switch v := value.(type) {
				case string:
					return v
				case json.Number:
					return v.String()
				case bool:
					return fmt.Sprint(v)
				}
				if !has {
					refusal = fmt.Sprintf("has no field %q, which task %d uses in args[%d]", cut(name, 64), t.Number, i)
				} else {
					refusal = fmt.Sprintf("field %q must be text, a number or a boolean: task %d uses it in args[%d]",
						cut(name, 64), t.Number, i)
				}
				return ""
			})
			if refusal == "" {
				if text := checkWord(fmt.Sprintf("args[%d]", i), filled); text != "" {
					refusal = fmt.Sprintf("does not suit task %d: %s", t.Number, text)
				}
			}
			if refusal != "" {
				return refusal
			}
		}
	}
	return ""
}
