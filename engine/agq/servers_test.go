package agq_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/kagzi/kagzi/backends"
	"github.com/kagzi/kagzi/backends/postgres/pgtest"
	"github.com/kagzi/kagzi/backends/sqlite"
	"github.com/kagzi/kagzi/backends/sqlite/sqlitetest"
	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/agq"
	"github.com/kagzi/kagzi/engine/lab/long"
	"github.com/kagzi/kagzi/engine/server"
)

// open starts a server on a database by its URL.
func open(t testing.TB, url string) *fixture {
	t.Helper()
	store, err := backends.Open(t.Context(), url, engine.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f := serveWith(t, store, store.Now, server.Options{}, func(d *agq.Door) {
		if strings.HasPrefix(url, "sqlite:") {
			d.Alone()
		}
	})
	stop := f.stop
	f.stop = sync.OnceFunc(func() {
		stop()
		_ = store.Close()
	})
	t.Cleanup(f.stop)
	return f
}

// TestTwoServersOnPostgres has a worker whose every command goes to another of two servers.
func TestTwoServersOnPostgres(t *testing.T) {
	url := pgtest.Lend(t, backends.Migrate).URL
	servers := []*fixture{open(t, url), open(t, url)}
	jobs := servers[0].submit("a", 20)
	for i, job := range jobs {
		at := func(n int) *client { return servers[(i+n)%2].as("w1") }
		at(0).want("$"+job, "BRPOPLPUSH", "queue:ready", "queue:processing", "20")
		at(1).want(`${"job_id":"`+job+`"…`, "GET", "job:"+job)
		at(0).want("$…", "GET", "plan:echo")
		at(1).want("+OK", "SET", "job:"+job+":stdout", fmt.Sprint(i))
		at(0).want("+OK", "SET", "job:"+job+":stderr", "e")
		at(1).want("+OK", "SET", "job:"+job+":status", "completed")
		at(0).want("+OK", "SET", "job:"+job+":status", "completed") // its answer was lost
		at(0).want(fmt.Sprintf("$%d", i), "GET", "job:"+job+":stdout")
		if run := servers[1].run(job); run.LeaseLosses != 0 || run.GetStepRetries() != 0 {
			t.Fatalf("job %d had %d losses and %d retries", i, run.LeaseLosses, run.GetStepRetries())
		}
	}
	// a pop on one server gets what was submitted to the other
	c := servers[1].as("w2")
	c.send("BRPOPLPUSH", "queue:ready", "queue:processing", "20")
	job := servers[0].submit("b", 1)[0]
	if got := c.answer(); got != "$"+job {
		t.Errorf("the pop is answered %q, want %s", got, job)
	}
	// tools route on Postgres as well
	c.want("+OK", "SET", "job:"+job+":status", "completed")
	job = servers[0].submit("c", 1)[0]
	c.want("+OK", "SET", "worker:w2:tools", "echo")
	c.want("nil$", "BRPOPLPUSH", "queue:ready", "queue:processing", "0.1")
	c.want("+OK", "SET", "worker:w2:tools", "wc,echo")
	c.want("$"+job, "BRPOPLPUSH", "queue:ready", "queue:processing", "20")
}

// TestAWorkerOutlivesItsServer stops the server between two commands of a worker, as kill -9 does to what it
// has in memory: the next server knows only the database.
func TestAWorkerOutlivesItsServer(t *testing.T) {
	url := "sqlite:" + sqlitetest.FreshIn(t, long.ScratchDir(t), sqlite.Migrate)
	f := open(t, url)
	jobs := f.submit("a", 2)
	c := f.dial()
	c.want("+OK", "SET", "worker:w1:tools", "echo,wc")
	c.want("$w1", "PING", "w1")
	c.want("$"+jobs[0], "BRPOPLPUSH", "queue:ready", "queue:processing", "20")
	for _, args := range conversation[:5] {
		f.stop()
		f = open(t, url)
		c = f.as("w1")
		if got := c.do(said(jobs[0], args)...); strings.HasPrefix(got, "-") || strings.HasPrefix(got, "nil") {
			t.Fatalf("%q is answered %q", args, got)
		}
	}
	f.stop()
	f = open(t, url)
	if out := string(f.run(jobs[0]).Output.GetData()); !strings.Contains(out, `"stdout":"hello","stderr":"e"`) {
		t.Errorf("the job ended with %s", out)
	}
	f.as("w1").want("$"+jobs[1], "BRPOPLPUSH", "queue:ready", "queue:processing", "20")
	f.dial().want("$echo,wc", "GET", "worker:w1:tools")
}
