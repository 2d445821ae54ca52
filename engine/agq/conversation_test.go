package agq_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const registration = `{"worker_id":"w7","hostname":"h","platform":"linux-amd64","agw_version":"0.1.0",` +
	`"capabilities":{"tools":["echo","wc"],"agentic_units":["agx-ocr"]},"max_concurrent_jobs":2,"tags":{"tier":"dev"}}`

// line is a command and its answer.
type line struct {
	say  []string
	want string
}

func says(want string, args ...string) line { return line{args, want} }

// TestConversations says one command after another on one connection of a server without keys.
func TestConversations(t *testing.T) {
	for name, lines := range map[string][]line{
		"of clients of Redis": {
			says("+PONG", "ping"),
			says("$hello world", "PING", "hello world"),
			says("+OK", "AUTH", "anything"),
			says("*[$server $kagzi $version $7.2.0 $proto :2…", "HELLO"),
			says("%[$server $kagzi $version $7.2.0 $proto :3…", "HELLO", "3", "AUTH", "default", "x", "SETNAME", "me"),
			says("$me", "CLIENT", "GETNAME"),
			says("+OK", "CLIENT", "SETINFO", "LIB-NAME", "x"),
			says("-ERR unknown subcommand 'MAINT_NOTIFICATIONS' of CLIENT", "CLIENT", "MAINT_NOTIFICATIONS", "ON"),
			says("-NOPROTO unsupported protocol version", "HELLO", "4"),
			says("-ERR syntax error in HELLO", "HELLO", "3", "AUTH", "x"),
			says("+OK", "SELECT", "0"),
			says("-ERR DB index is out of range", "SELECT", "1"),
			says("$# Server\r\nredis_version:7.2.0…", "INFO"),
			says("*[]", "COMMAND"),
			says("%[]", "COMMAND", "DOCS"),
			says("%[]", "CONFIG", "GET", "save"),
			says("-ERR Kagzi's settings…", "CONFIG", "SET", "save", "1"),
			says("$x", "ECHO", "x"),
			says("-ERR wrong number of arguments for 'echo' command", "ECHO"),
			says("-ERR unknown command 'FLUSHALL'", "flushall"),
			says("nil_", "BRPOP", "queue:ready", "0.01"),
			says("+RESET", "RESET"),
			says("nil*", "BRPOP", "queue:ready", "0.01"),
			says("+OK", "QUIT"),
		},
		"of a worker of seed 002": {
			says("-ERR Worker not registered: w7", "WORKER.HEARTBEAT", "w7"),
			says("+OK worker_id=w7 heartbeat_interval=30", "WORKER.REGISTER", registration),
			says("+OK worker_id=w7 heartbeat_interval=30", "WORKER.REGISTER", registration), // it says so again
			says("+OK", "WORKER.HEARTBEAT", "w7"),
			says("+OK",
				"WORKER.HEARTBEAT", "w7", `{"active_jobs":0,"cpu_usage_percent":12.5,"memory_mb":512,"uptime_seconds":60}`),
			says("-ERR Invalid worker stats: active_jobs cannot be of type string",
				"WORKER.HEARTBEAT", "w7", `{"active_jobs":"x"}`),
			says("-ERR stats.memory_bytes: must be a number…", "WORKER.HEARTBEAT", "w7", `{"memory_mb":-1}`),
			says("-ERR this connection speaks for the worker w7…", "WORKER.HEARTBEAT", "w8"),
			says("*[$worker:w7:alive]", "KEYS", "worker:*:alive"),
			says(":1", "EXISTS", "worker:w7:alive"),
			says(":0", "EXISTS", "worker:w8:alive"),
			says(":-2", "TTL", "worker:w8:alive"),
			says("$1…", "GET", "worker:w7:alive"),
			says(`${"worker_id":"w7","hostname":"h","platform":"linux-amd64","agw_version":"0.1.0",`+
				`"capabilities":{"tools":["echo","wc"],"agentic_units":["agx-ocr"]},"max_concurrent_jobs":2,"tags":{"tier":"dev"}…`,
				"GET", "worker:w7:metadata"),
			says("$echo,wc", "GET", "worker:w7:tools"),
			says(`${"active_jobs":0,"completed_jobs_total":0,"failed_jobs_total":0,"avg_job_duration_ms":0,"uptime_seconds":60,`+
				`"cpu_usage_percent":12.5,"memory_mb":512,"disk_available_gb":0}`, "GET", "worker:w7:stats"),
			says(`*[${"worker_id":"w7","status":"ACTIVE","hostname":"h","tools":["echo","wc"]…`, "WORKERS.LIST"),
			says("nil*", "BRPOP", "queue:ready", "0.01"),
			says("+OK", "WORKER.UNREGISTER", "w7"),
			says("-ERR Worker not registered: w7", "WORKER.HEARTBEAT", "w7"),
			says("-ERR Worker not registered: w7", "WORKER.UNREGISTER", "w7"),
			says("nil$", "GET", "worker:w7:alive"),
			says(`*[${"worker_id":"w7","status":"UNREGISTERED"…`, "WORKERS.LIST"),
		},
		"of a worker with a wrong registration": {
			says("-ERR Invalid capabilities format: it is no JSON…", "WORKER.REGISTER", "{"),
			says("-ERR Invalid capabilities format: capabilities.tools must be a list of names", "WORKER.REGISTER",
				`{"worker_id":"w","hostname":"h","agw_version":"1.0.0"}`),
			says("-ERR Invalid capabilities format: capabilities.tools[0] may hold…", "WORKER.REGISTER",
				`{"worker_id":"w","hostname":"h","agw_version":"1.0.0","capabilities":{"tools":["a b"]}}`),
			says("-ERR Invalid registration: agw_version must be a semantic version such as 0.1.0, got 'x'",
				"WORKER.REGISTER",
				`{"worker_id":"w","hostname":"h","agw_version":"x","capabilities":{"tools":[]}}`),
			says("-ERR Invalid registration: hostname must not be empty", "WORKER.REGISTER", `{}`),
			says("-ERR Invalid registration: max_concurrent_jobs must be between 1 and 100, got 0", "WORKER.REGISTER",
				strings.Replace(registration, ":2,", ":0,", 1)),
			says("-ERR worker_id: …", "WORKER.REGISTER", strings.Replace(registration, "w7", "w 7", 1)),
			says("-ERR Invalid capabilities format: tools[0] has 59 characters…",
				"SET", "worker:w:tools", strings.Repeat("x", 59)),
			says("-ERR WORKER.VERIFY is off…", "WORKER.VERIFY", "agx-ocr", "{}"),
		},
		"of a client": {
			says("*[]", "PLAN.LIST"),
			says("-ERR Plan not found: echo", "PLAN.GET", "echo"),
			says("$echo", "PLAN.SUBMIT", echoPlan),
			says("$echo", "PLAN.SUBMIT", echoPlan),
			says("-ERR Plan already exists: echo (with other content)", "PLAN.SUBMIT",
				`{"plan_id":"echo","tasks":[{"task_number":1,"command":"ls"}]}`),
			says(`*[${"plan_id":"echo","description":"says a word","task_count":2,"created_at":"20…`, "PLAN.LIST"),
			says(`${"plan_description":"says a word","plan_id":"echo","tasks":[{"task_number":1,"command":"echo",`+
				`"args":["{{input.word}}"],"timeout_secs":5},{"task_number":2,"command":"wc","args":["-c"],"input_from_task":1}]}`,
				"PLAN.GET", "echo"),
			says("-ERR Plan not found: none", "ACTION.SUBMIT", `{"action_id":"a","plan_id":"none","inputs":[]}`),
			says(`-ERR Invalid action schema: inputs[0] has no field "word", which task 1 uses in args[0]`,
				"ACTION.SUBMIT",
				`{"action_id":"a","plan_id":"echo","inputs":[]}`),
			says(`-ERR Invalid action schema: inputs[1] field "word" must be text, a number or a boolean: task 1 uses it in args[0]`,
				"ACTION.SUBMIT", `{"action_id":"a","plan_id":"echo","inputs":[{"word":1},{"word":[]}]}`),
			says(`-ERR Invalid action schema: inputs[0] does not suit task 1: args[0] must not hold ';'…`,
				"ACTION.SUBMIT",
				`{"action_id":"a","plan_id":"echo","inputs":[{"word":"a;b"}]}`),
			says("-ERR Invalid action schema: inputs[0] must be an object", "ACTION.SUBMIT",
				`{"action_id":"a","plan_id":"echo","inputs":[1]}`),
			says("-ERR Invalid action schema: action_id must not hold a colon or a slash", "ACTION.SUBMIT",
				`{"action_id":"a:b","plan_id":"echo","inputs":[{"word":1}]}`),
			says("-ERR Action not found: a", "ACTION.STATUS", "a"),
			says(`${"action_id":"a","plan_id":"echo","plan_description":"says a word","jobs_created":2,"job_ids":["…`,
				"ACTION.SUBMIT", `{"action_id":"a","plan_id":"echo","inputs":[{"word":true},{"word":"x"}]}`),
			says("-ERR Action already exists: a",
				"ACTION.SUBMIT", `{"action_id":"a","plan_id":"echo","inputs":[{"word":2}]}`),
			says(`${"action_id":"a","plan_id":"echo","status":"pending","total_jobs":2,"pending":2,"running":0,"completed":0,`+
				`"failed":0,"dead":0…`, "ACTION.STATUS", "a"),
			says("*[]", "JOB.LIST", "a", "dead"),
			says(`*[${"job_id":"…`, "JOB.LIST", "a", "pending"),
			says("-ERR status must be pending…", "JOB.LIST", "a", "gone"),
			says(`*[${"job_id":"…`, "JOBS.LIST"),
			says("*[]", "JOBS.LIST", "running"),
			says(`*[${"job_id":"…`, "JOBS.SEARCH", `tag.agq.action = "a"`),
			says("-ERR query: …", "JOBS.SEARCH", `status =`),
			says(`*[${"job_id":"…`, "QUEUE.PEEK"),
			says("*[$pending_jobs $2 $scheduled_jobs $0 $processing_jobs $0 $unserved_jobs $2…", "QUEUE.STATS"),
			says(":2", "LLEN", "queue:ready"),
			says(":0", "LLEN", "queue:processing"),
			says("-ERR Job not found: x", "JOB.STATUS", "x"),
			says("-ERR Job not found: x", "JOB.RETRY", "x"),
			says("-ERR Plan in use: echo has 2 open jobs; delete it when they have ended", "PLAN.DELETE", "echo"),
			says("*[$pending_jobs $2…", "METRICS"),
			says("$ls",
				"PLAN.SUBMIT", `{"plan_id":"ls","tasks":[{"task_number":1,"command":"ls","timeout_secs":null}]}`),
			says(`${"action_id":"b","plan_id":"ls","jobs_created":1…`,
				"ACTION.SUBMIT", `{"action_id":"b","plan_id":"ls","inputs":[]}`),
			says("$free", "PLAN.SUBMIT", `{"plan_id":"free","job_id":"x","tasks":[{"task_number":1,"command":"ls"}]}`),
			says("+OK", "PLAN.DELETE", "free"),
			says("-ERR Plan not found: free", "PLAN.GET", "free"),
			says("-ERR Plan not found: free", "PLAN.DELETE", "free"),
		},
		"about other keys": {
			says("-ERR unknown key space; Kagzi serves AGQ's keys only", "GET", "x"),
			says("-ERR unknown key space; Kagzi serves AGQ's keys only", "SET", "x", "y"),
			says("-ERR unknown key space; Kagzi serves AGQ's keys only", "SET", "job:1:other", "y"),
			says("-ERR unknown key space; Kagzi serves AGQ's keys only", "BRPOP", "list", "1"),
			says("-ERR unknown key space; Kagzi serves AGQ's keys only", "BRPOPLPUSH", "queue:ready", "mine", "1"),
			says("-ERR unknown key space; Kagzi serves AGQ's keys only", "LREM", "list", "1", "x"),
			says("-ERR unknown key space; Kagzi serves AGQ's keys only", "KEYS", "job:*"),
			says("-ERR unknown key space; Kagzi serves AGQ's keys only", "LLEN", "list"),
			says("-ERR unknown key space; Kagzi serves AGQ's keys only", "TTL", "x"),
			says("-ERR timeout is not a float or out of range", "BRPOP", "queue:ready", "x"),
			says("-ERR timeout is negative", "BRPOP", "queue:ready", "-1"),
			says("nil$", "GET", "job:none"),
			says("nil$", "GET", "plan:none"),
			says("nil$", "GET", "job:none:worker"),
			says("-ERR Job not found: none", "SET", "job:none:status", "completed"),
			says("-ERR Job not found: none", "SET", "job:none:stdout", "x"),
			says("-ERR status must be running, completed or failed, got 'x'", "SET", "job:none:status", "x"),
			says("-ERR Job not found: none", "JOB.UPDATE", "none", `{"status":"completed"}`),
			says("-ERR Invalid job update: it is no JSON…", "JOB.UPDATE", "none", `x`),
			says("-ERR Invalid job update: task_results[0].task_number must be between 1 and 100, got 0",
				"JOB.UPDATE", "none",
				`{"status":"completed","task_results":[{}]}`),
			says(":0", "LREM", "queue:processing", "1", "none"),
			says("nil$", "RPOP", "queue:ready"),
			says("nil$", "RPOPLPUSH", "queue:ready", "queue:processing"),
			says("nil$", "BLMOVE", "queue:ready", "queue:processing", "RIGHT", "LEFT", "0.01"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t).dial()
			for _, l := range lines {
				c.want(l.want, l.say...)
			}
		})
	}
}

func TestPlansThatEndAGWAreRefused(t *testing.T) {
	c := start(t).dial()
	many, long := strings.TrimSuffix(strings.Repeat(`"x",`, 257), ","), strings.Repeat("x", 4097)
	one := func(fields string) string { return `{"tasks":[{"task_number":1,` + fields + `}]}` }
	for text, want := range map[string]string{
		`[]`:            "it must be an object, got array",
		`null`:          "it must be an object, got null",
		`{"plan_id":1}`: "plan_id must be text",
		`{}`:            "tasks must be a list of 1 to 100 tasks",
		`{"tasks":[]}`:  "tasks must be a list of 1 to 100 tasks",
		`{"plan_id":"a/b","tasks":[{"task_number":1,"command":"x"}]}`: "plan_id must not hold a colon or a slash",
		`{"tasks":[{"task_number":2,"command":"x"}]}`:                 "task 1: task_number must be 1",
		one(`"command":""`):                                                      "task 1: command must not be empty",
		one(`"command":"a","args":null`):                                         "task 1: args must be a list of texts, got null",
		one(`"command":"a","args":["a|b"]`):                                      "task 1: args[0] must not hold '|'",
		one(`"command":"a&b"`):                                                   "task 1: command must not hold '&'",
		one(`"command":"a","args":["x","../y"]`):                                 "task 1: args[1] must not begin with .. or hold ../",
		one(`"command":"..a"`):                                                   "task 1: command must not begin with ..",
		one(`"command":"a","args":["a\nb"]`):                                     "task 1: args[0] must not hold the character U+000A",
		one(`"command":"a","args":["a\u202eb"]`):                                 "task 1: args[0] must not hold the character U+202E",
		one(`"command":"a","timeout_secs":0`):                                    "task 1: timeout_secs must be a whole number",
		one(`"command":"a","timeout_secs":86401`):                                "task 1: timeout_secs must be a whole number",
		one(`"command":"a","args":[` + many + `]`):                               "task 1: args has 257 entries, at most 256",
		one(`"command":"a","args":["` + long + `"]`):                             "task 1: args[0] has 4097 bytes",
		one(`"command":"a","input_from_task":1`):                                 "task 1: input_from_task must be the number of an earlier",
		one(`"command":"a"},{"task_number":2,"command":"b","input_from_task":3`): "task 2: input_from_task",
		one(`"command":"a=b"`):                                                   "task 1: command may hold only printable ASCII",
		`{"job_timeout_secs":0,"tasks":[]}`:                                      "job_timeout_secs must be a whole number",
	} {
		c.want("-ERR Invalid plan schema: "+want+"…", "PLAN.SUBMIT", text)
	}
	c.want("$plan_…", "PLAN.SUBMIT", `{"tasks":[{"task_number":1,"command":"a"}]}`)
	if a, b := c.do("PLAN.SUBMIT", `{"tasks":[{"task_number":1,"command":"b"}]}`),
		c.do("PLAN.SUBMIT", `{ "tasks":[{"command":"b","task_number":1}]}`); a != b {
		t.Errorf("the same plan without an id has the ids %s and %s", a, b)
	}
}

func TestJobsWithTaskResultsHaveSteps(t *testing.T) {
	f := start(t)
	jobs := f.submit("a", 2)
	c := f.dial()
	c.want("+OK worker_id=w7…", "WORKER.REGISTER", registration)
	for range jobs { // it may have two
		c.want("*[$queue:ready ${\"job_id\":…", "BRPOP", "queue:ready", "20")
	}
	job := jobs[0]
	c.want("+OK", "JOB.UPDATE", job, `{"status":"running","worker_id":"w7","started_at":"2025-11-17T10:00:00Z"}`)
	c.want("+OK", "JOB.UPDATE", job, `{"current_task":2,"progress_percent":40}`)
	if note := f.run(job).Note; note != "task 2, 40 %" {
		t.Errorf("the run's note is %q", note)
	}
	c.want("$w7", "GET", "job:"+job+":worker")
	c.want("-ERR Invalid status transition: running -> pending", "JOB.UPDATE", job, `{"status":"pending"}`)
	done := `{"status":"completed","completed_at":"2025-11-17T10:00:15Z","task_results":[` +
		`{"task_number":1,"command":"echo","exit_code":0,"stdout":"hello","stderr":"","duration_ms":3},` +
		`{"task_number":2,"command":"wc","exit_code":0,"stdout":"6","stderr":"","duration_ms":2}]}`
	other := f.dial()
	other.want("-ERR Job "+job+" is not claimed by worker w9…", "JOB.UPDATE", job, `{"status":"completed","worker_id":"w9"}`)
	c.want("+OK", "JOB.UPDATE", job, done)
	c.want("+OK", "JOB.UPDATE", job, done) // its answer was lost
	c.want("-ERR Invalid status transition: completed -> running", "JOB.UPDATE", job, `{"current_task":1}`)
	c.want("-ERR Invalid status transition: completed -> failed", "JOB.UPDATE", job, `{"status":"failed"}`)
	if got := f.steps(job); got != "job COMPLETED, task-1 COMPLETED, task-2 COMPLETED" {
		t.Errorf("the run's steps are %s", got)
	}
	c.want("+OK", "JOB.UPDATE", jobs[1], `{"status":"failed","error":"Task 2 timed out"}`)
	if got := c.do("JOB.STATUS", jobs[1]); !strings.Contains(got, `"status":"pending"`) || !strings.Contains(got, `"retries":1`) {
		t.Errorf("a failed job with retries left is %s", got)
	}
	c.want("+OK", "WORKER.HEARTBEAT", "w7")
}

func TestAnUnregisteredWorkersJobsAreDueAtOnce(t *testing.T) {
	f := start(t)
	job := f.submit("a", 1)[0]
	c := f.dial()
	c.want("+OK worker_id=w7…", "WORKER.REGISTER", registration)
	c.want("$"+job, "BRPOPLPUSH", "queue:ready", "queue:processing", "20")
	c.want("+OK", "WORKER.UNREGISTER", "w7")
	f.as("w8").want("$"+job, "BRPOPLPUSH", "queue:ready", "queue:processing", "20")
	if run := f.run(job); run.LeaseLosses != 0 {
		t.Errorf("the job counts %d losses", run.LeaseLosses)
	}
}

func TestAWorkerIsRegisteredWhileItsConnectionIsOpen(t *testing.T) {
	f := start(t)
	a, b := f.dial(), f.dial()
	a.want("+OK worker_id=w7…", "WORKER.REGISTER", registration)
	b.want("-ERR Worker ID already registered", "WORKER.REGISTER", registration)
	a.want("+OK", "QUIT")
	a.closed()
	for !strings.HasPrefix(b.do("WORKER.REGISTER", registration), "+OK") { // until the server knows of the end
	}
}

func TestAHundredJobsAreOneTransaction(t *testing.T) {
	w := newWorld()
	f := w.start(t)
	f.dial().want("$echo", "PLAN.SUBMIT", echoPlan)
	before := len(w.db.Runs())
	ids := f.submit("a", 100)
	if n := len(w.db.Runs()) - before; n != 100 || len(ids) != 100 {
		t.Errorf("100 inputs made %d runs and %d ids", n, len(ids))
	}
	slices.Sort(ids)
	if len(slices.Compact(ids)) != 100 {
		t.Error("two jobs have one id")
	}
}

func TestJobsAreRunsLikeOthers(t *testing.T) {
	f := start(t)
	jobs := f.submit("a", 2)
	runs := kagziv1.NewWorkflowServiceClient(f.conn)
	list, err := runs.ListWorkflows(t.Context(), &kagziv1.ListWorkflowsRequest{Query: `type = "agq.job"`})
	if err != nil || len(list.Workflows) != 2 {
		t.Fatalf("a query finds %d jobs, %v", len(list.GetWorkflows()), err)
	}
	explained, err := runs.ExplainWorkflow(t.Context(), &kagziv1.ExplainWorkflowRequest{RunId: jobs[0]})
	if err != nil || explained.String() == "" {
		t.Fatalf("a job is explained as %v, %v", explained, err)
	}
	c := f.as("w1")
	c.want("$"+jobs[0], "BRPOPLPUSH", "queue:ready", "queue:processing", "20")
	if _, err := runs.CancelWorkflow(t.Context(), &kagziv1.CancelWorkflowRequest{RunId: jobs[0]}); err != nil {
		t.Fatal(err)
	}
	c.want("-ERR Invalid status transition: failed -> completed", "SET", "job:"+jobs[0]+":status", "completed")
	c.want("$"+jobs[1], "BRPOPLPUSH", "queue:ready", "queue:processing", "20")
	f.wantStatus(jobs[0], "failed")
	c.want(fmt.Sprintf(`-ERR Invalid status transition: %s -> pending`, "running"), "JOB.RETRY", jobs[1])
}

func TestLongOutputsAreCutWithAMark(t *testing.T) {
	f := start(t)
	job := f.submit("a", 1)[0]
	c := f.as("w1")
	c.want("$"+job, "BRPOPLPUSH", "queue:ready", "queue:processing", "20")
	c.want("+OK", "SET", "job:"+job+":stdout", strings.Repeat("\x00", 9<<20))
	c.want("+OK", "SET", "job:"+job+":stderr", "\xff\xfe")
	c.want("+OK", "SET", "job:"+job+":status", "completed")
	got := c.do("GET", "job:"+job+":stdout")
	if !strings.HasSuffix(got, engine.CutMark) || len(got) < 10_000 || len(got) > 512<<10 {
		t.Errorf("a long output is stored as %d bytes that end with %q", len(got), got[max(0, len(got)-20):])
	}
	c.want("$\uFFFD", "GET", "job:"+job+":stderr")
}

func TestPipelinesAreAnsweredInOrder(t *testing.T) {
	c := start(t).dial()
	text := "ping w1\r\n" + encode("GET", "x") + encode("brpop", "queue:ready", "0") + "echo \"a b\"\r\n" + encode("QUIT")
	if _, err := c.raw.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"$w1", "-ERR unknown key space; Kagzi serves AGQ's keys only", "nil*", "$a b", "+OK"} {
		if got := c.answer(); got != want {
			t.Errorf("answered %q, want %q", got, want)
		}
	}
	c.closed()
}

func TestGarbageClosesTheConnectionWithAReason(t *testing.T) {
	c := start(t).dial()
	if _, err := c.raw.Write([]byte("*1\r\n+x\r\n")); err != nil {
		t.Fatal(err)
	}
	if got := c.answer(); !strings.HasPrefix(got, "-ERR Protocol error: expected '$'") {
		t.Errorf("answered %q", got)
	}
	c.closed()
}
