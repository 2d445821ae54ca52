package agq_test

import (
	"strings"
	"testing"

	"github.com/kagzi/kagzi/engine/agq"
	"github.com/kagzi/kagzi/engine/server"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// verifying starts a server that serves WORKER.VERIFY.
func (w *world) verifying(t *testing.T) *fixture {
	t.Helper()
	return serveWith(t, w.db.Open(nil), w.now, server.Options{}, (*agq.Door).AllowVerify)
}

// working returns a connection of the worker w1, which has been seen at the port.
func (f *fixture) working(tools string) *client {
	f.Helper()
	c := f.as("w1")
	c.want("+OK", "SET", "worker:w1:tools", tools)
	return c
}

func TestAnOperatorAsksWhatAToolSays(t *testing.T) {
	w := newWorld()
	f, other := w.verifying(t), w.verifying(t) // the operator's is not the worker's server
	c := f.working("echo,wc")
	idle := f.as("w2")
	idle.want("+OK", "SET", "worker:w2:tools", "echo,wc")
	idle.send("BRPOPLPUSH", "queue:ready", "queue:processing", "0")
	operator := other.dial()
	operator.send("WORKER.VERIFY", "echo", `{"worker_id":"w1","command":"echo","args":["--version"]}`)

	job := c.popped()
	plan := strings.Split(strings.SplitAfter(c.do("GET", "job:"+job), `"plan_id":"`)[1], `"`)[0]
	if got := c.do("GET", "plan:"+plan); !strings.Contains(got, `"command":"echo","args":["--version"]`) &&
		!strings.Contains(got, `"args":["--version"],"command":"echo"`) {
		t.Errorf("the plan is %s", got)
	}
	c.want("+OK", "SET", "job:"+job+":stdout", "\n  echo 9.1 \"x\"\x1b[31m\nCopyright\n")
	c.want("+OK", "SET", "job:"+job+":status", "completed")
	const says = `echo 9.1 \"x\" [31m`
	if got := operator.answer(); got != `+OK output="`+says+`"` {
		t.Fatalf("WORKER.VERIFY is answered %q", got)
	}
	for _, command := range [][]string{{"WORKERS.LIST"}, {"GET", "worker:w1:metadata"}} {
		if got := operator.do(command...); strings.Count(got, `"verified":{"echo":"`+says+`"}`) != 1 {
			t.Errorf("%q is answered %s", command, got)
		}
	}
	worker, err := kagziv1.NewAdminServiceClient(f.conn).GetWorker(t.Context(), &kagziv1.GetWorkerRequest{WorkerId: "w1"})
	if err != nil || worker.Worker.Capabilities["says:echo"] != `echo 9.1 "x" [31m` {
		t.Errorf("the worker has the capabilities %v, %v", worker.GetWorker().GetCapabilities(), err)
	}

	// it stays while the worker names its tools again, and the worker gets other jobs as before
	c.want("+OK", "SET", "worker:w1:tools", "echo,wc,sort")
	idle.want("nil$", "PING", "w2") // the pop was waiting all the time
	if got := idle.answer(); got != "$w2" {
		t.Errorf("the other worker's PING is answered %q", got)
	}
	if got := operator.do("GET", "worker:w1:metadata"); !strings.Contains(got, `"verified":{"echo"`) {
		t.Errorf("the worker is %s", got)
	}
	job = f.submit("a", 1)[0]
	c.want("$"+job, "BRPOPLPUSH", "queue:ready", "queue:processing", "20")
	c.want("+OK", "SET", "job:"+job+":status", "completed")

	// a tool that cannot be run is verified no more, and is not tried again
	operator.send("WORKER.VERIFY", "echo", `{"worker_id":"w1","args":[]}`)
	job = c.popped()
	c.want("+OK", "JOB.UPDATE", job, `{"status":"failed","error":"not found"}`)
	if got := operator.answer(); got != "-ERR worker w1 failed to run echo: not found" {
		t.Errorf("WORKER.VERIFY is answered %q", got)
	}
	if got := operator.do("WORKERS.LIST"); strings.Contains(got, "verified") {
		t.Errorf("the workers are %s", got)
	}
}

func TestWhatIsNotVerified(t *testing.T) {
	w := newWorld()
	off := w.start(t)
	off.dial().want("-ERR WORKER.VERIFY is off…", "WORKER.VERIFY", "echo", `{"worker_id":"w1"}`)
	f := w.verifying(t)
	f.working("echo")
	o := f.dial()
	o.want("-ERR Invalid verification: worker_id must name the worker", "WORKER.VERIFY", "echo")
	o.want("-ERR Invalid verification: …", "WORKER.VERIFY", "echo", "x")
	o.want("-ERR Invalid verification: command must be echo, got 'rm'", "WORKER.VERIFY", "echo",
		`{"worker_id":"w1","command":"rm"}`)
	o.want("-ERR Invalid verification: task 1: …", "WORKER.VERIFY", "echo", `{"worker_id":"w1","args":["a;b"]}`)
	o.want("-ERR Invalid verification: …", "WORKER.VERIFY", "echo", `{"worker_id":"w1","args":["{{input.x}}"]}`)
	o.want("-ERR Worker w1 has not named 'rm'…", "WORKER.VERIFY", "rm", `{"worker_id":"w1"}`)
	o.want("-ERR Worker not registered: w9", "WORKER.VERIFY", "echo", `{"worker_id":"w9"}`)
	c := off.working("echo") // it comes to the server that does not serve it
	o.want("-ERR Worker w1 is connected to a server…", "WORKER.VERIFY", "echo", `{"worker_id":"w1"}`)
	c.want("+OK", "WORKER.UNREGISTER", "w1")
	o.want("-ERR Worker not active: w1", "WORKER.VERIFY", "echo", `{"worker_id":"w1"}`)
}

func TestOnlyOperatorsVerify(t *testing.T) {
	f := newWorld().verifying(t)
	k := &keyed{fixture: f}
	k.admin = k.key(&kagziv1.Key{Name: "root", Role: kagziv1.KeyRole_KEY_ROLE_ADMIN})
	for role, want := range map[kagziv1.KeyRole]string{
		kagziv1.KeyRole_KEY_ROLE_CLIENT:   "-NOPERM WORKER.VERIFY needs the key of an operator…",
		kagziv1.KeyRole_KEY_ROLE_WORKER:   "-NOPERM WORKER.VERIFY needs the key of an operator…",
		kagziv1.KeyRole_KEY_ROLE_OPERATOR: "-ERR Worker not registered: w1",
	} {
		c := f.dial()
		c.want("+OK", "AUTH", k.key(&kagziv1.Key{Name: role.String(), Role: role, Namespaces: []string{"default"}}))
		c.want(want, "WORKER.VERIFY", "echo", `{"worker_id":"w1"}`)
	}
}
