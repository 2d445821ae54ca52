package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/kagzi/kagzi/engine/lab/e2e"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/widget/widgettest"
)

// startSite starts a server whose page is at the same address after a restart.
func startSite(t *testing.T, args ...string) (a *agents, again func() *agents) {
	t.Helper()
	fixed := append([]string{"--data-dir", filepath.Join(t.TempDir(), "data"), "--listen", e2e.FreeAddress(t),
		"--http", e2e.FreeAddress(t)}, args...)
	a = startAgents(t, fixed...)
	return a, func() *agents {
		a.stop()
		next := startAgents(t, fixed...)
		next.secrets = a.secrets
		return next
	}
}

// begin starts a run.
func (a *agents) begin(change func(*kagziv1.StartWorkflowRequest)) string {
	a.t.Helper()
	r := &kagziv1.StartWorkflowRequest{WorkflowType: "order", TaskQueue: "nobody"}
	if change != nil {
		change(r)
	}
	started, err := a.api.StartWorkflow(a.as(kagziv1.KeyRole_KEY_ROLE_ADMIN), r)
	if err != nil {
		a.t.Fatal(err)
	}
	return started.RunId
}

func (a *agents) cancel(run string) {
	a.t.Helper()
	_, err := a.api.CancelWorkflow(a.as(kagziv1.KeyRole_KEY_ROLE_ADMIN), &kagziv1.CancelWorkflowRequest{RunId: run})
	if err != nil {
		a.t.Fatal(err)
	}
}

func (a *agents) run(id string) *kagziv1.Workflow {
	a.t.Helper()
	answer, err := a.api.GetWorkflow(a.as(kagziv1.KeyRole_KEY_ROLE_ADMIN), &kagziv1.GetWorkflowRequest{RunId: id})
	if err != nil {
		a.t.Fatal(err)
	}
	return answer.Workflow
}

// failed starts the worker of these tests and a run that fails in its second step; the faults that the
// result names make it fail.
func (a *agents) failed() (run, broken string) {
	a.t.Helper()
	faults := a.t.TempDir()
	broken = filepath.Join(faults, "broken")
	if err := os.WriteFile(broken, nil, 0o600); err != nil {
		a.t.Fatal(err)
	}
	startWorker(a.t, a.grpc, faults)
	run = a.begin(func(r *kagziv1.StartWorkflowRequest) { r.WorkflowType, r.TaskQueue = "fragile", "e2e" })
	_, err := a.api.WaitWorkflow(a.as(kagziv1.KeyRole_KEY_ROLE_ADMIN), &kagziv1.WaitWorkflowRequest{
		RunId: run, Wait: durationpb.New(30 * time.Second)})
	if err != nil {
		a.t.Fatal(err)
	}
	return run, broken
}

// audited counts the records of a method about a run.
func (a *agents) audited(method, run string) (n int) {
	a.t.Helper()
	answer, err := a.api.ListAuditEvents(a.as(kagziv1.KeyRole_KEY_ROLE_ADMIN), &kagziv1.ListAuditEventsRequest{
		Namespace: "default", SubjectId: &run})
	if err != nil {
		a.t.Fatal(err)
	}
	for _, e := range answer.Events {
		if e.Method == method {
			n++
		}
	}
	return n
}

func runPage(run string) string { return "/n/default/runs/" + run }

// login logs in with a key and waits for a page.
func (p *tab) login(key string) {
	p.t.Helper()
	p.fill("#key", key)
	p.click("form.login button[type=submit]")
}

func TestPageLoginOutlivesARestartAndEndsWithTheKey(t *testing.T) {
	a, again := startSite(t)
	a.lock()
	p := profile(t, "http://"+a.http)
	p.open("/n/default/runs?q=status%3Afailed")
	p.at("/login?next=%2Fn%2Fdefault%2Fruns%3Fq%3Dstatus%253Afailed")
	p.picture("login")
	p.expect("401")
	p.login("kz_admin_wrong")
	p.until(`document.querySelector("[role=alert]").innerText !== ""`)
	p.login(a.secrets[kagziv1.KeyRole_KEY_ROLE_OPERATOR])
	p.at("/n/default/runs?q=status%3Afailed")
	p.shows("operator")
	kept := value[string](p, `document.cookie + JSON.stringify({...localStorage}) + JSON.stringify({...sessionStorage}) + document.documentElement.outerHTML`)
	if strings.Contains(kept, a.secrets[kagziv1.KeyRole_KEY_ROLE_OPERATOR]) || strings.Contains(kept, "kzs_") {
		t.Error("scripts can read the key or the session")
	}
	p.expect("/live") // its stream is lost when the server is killed
	a = again()
	p.do("reload", chromedp.Reload())
	p.at("/n/default/runs?q=status%3Afailed")
	p.click("header form.who button[type=submit]")
	p.at("/login")
	p.open("/n/default/runs")
	p.at("/login?next=%2Fn%2Fdefault%2Fruns")
	p.login(a.secrets[kagziv1.KeyRole_KEY_ROLE_VIEWER])
	p.at("/n/default/runs")
	keys, err := a.api.ListKeys(a.as(kagziv1.KeyRole_KEY_ROLE_ADMIN), &kagziv1.ListKeysRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys.Keys {
		if k.Role == kagziv1.KeyRole_KEY_ROLE_VIEWER {
			_, err = a.api.RevokeKey(a.as(kagziv1.KeyRole_KEY_ROLE_ADMIN), &kagziv1.RevokeKeyRequest{KeyId: k.KeyId})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	p.open("/n/default/runs")
	p.at("/login?next=%2Fn%2Fdefault%2Fruns")
}

func TestPageFiltersRuns(t *testing.T) {
	a := startAgents(t)
	open, ended := a.begin(nil), a.begin(func(r *kagziv1.StartWorkflowRequest) { r.WorkflowType = "invoice" })
	a.cancel(ended)
	p := profile(t, "http://"+a.http)
	p.open("/n/default/runs")
	rows := `[...document.querySelectorAll("table.runs tbody tr")].map(r => r.dataset.key).join()`
	p.until(rows + " === " + quote(ended+","+open))
	p.keys("/")
	p.until(`document.activeElement.id === "q"`)
	p.fill("#q", "status:cancelled type:inv*"+kb.Enter)
	p.until(rows + " === " + quote(ended))
	filters := `[...document.querySelectorAll("#saved a")].map(a => a.innerText).join()`
	p.click("#save")
	p.until(filters + ` === "status:cancelled type:inv*" && document.querySelector("#save").hidden`)
	p.open("/n/default/runs")
	p.click("#saved a")
	p.until(rows + " === " + quote(ended))
	p.click("#saved li button")
	p.until(filters + ` === "" && !document.querySelector("#save").hidden`)
	p.keys("j")
	p.keys(kb.Enter)
	p.at(runPage(ended))
	p.expect("400")
	p.open("/n/default/runs?q=since%3Anonsense")
	p.until(`document.querySelector("[role=alert]").innerText.includes("nonsense")`)
}

func TestPageCancelsOnce(t *testing.T) {
	a := startAgents(t)
	run := a.begin(nil)
	p := profile(t, "http://"+a.http)
	p.open("/n/default/act?do=cancel&id=" + run)
	p.until(`document.activeElement.id === "leave"`) // enter does nothing
	p.shows("kagzi workflow cancel " + run)
	p.picture("question")
	p.keys(kb.Enter)
	p.until(`!location.pathname.endsWith("/act") && document.readyState === "complete"`)
	if s := a.run(run).Status; s != kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING {
		t.Fatalf("leaving the question made the run %s", s)
	}
	p.open("/n/default/act?do=cancel&id=" + run)
	p.fill("#f-reason", `because "of" $(this)`)
	// An impatient finger, and a browser whose script is not there to hold it back.
	value[bool](p, `(() => {
		const form = document.querySelector("form.question"), data = new URLSearchParams(new FormData(form));
		data.set("act", "1");
		const send = () => fetch(form.action, {method: "POST", body: data});
		return Promise.all([send(), send(), send()]).then(() => true);
	})()`)
	p.open(runPage(run))
	p.shows("cancelled")
	if n := a.audited("CancelWorkflow", run); n != 1 {
		t.Errorf("the run was cancelled %d times, want once", n)
	}
}

func TestPageRetriesFromAStep(t *testing.T) {
	a := startAgents(t)
	run, broken := a.failed()
	p := profile(t, "http://"+a.http)
	p.open(runPage(run))
	p.shows("failed", "the van is broken", "prepare", "deliver")
	for name, width := range map[string]int64{"narrow": 360, "middle": 900, "wide": 1600} {
		p.size(width, 900)
		p.picture("run-" + name)
	}
	p.size(1280, 900)
	if err := os.Remove(broken); err != nil {
		t.Fatal(err)
	}
	p.open("/n/default/act?do=retry&id=" + run)
	p.fill("#f-from", "deliver")
	p.click("form.question button[name=act]")
	p.until(`/^\/n\/default\/runs\/[0-9a-f-]{36}$/.test(location.pathname) && location.pathname !== ` + quote(runPage(run)))
	p.shows("completed")
	next := value[string](p, `location.pathname.split("/").pop()`)
	if r := a.run(next); r.Status != kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED {
		t.Errorf("the new run is %s", r.Status)
	}
}

func TestPageActsOnAllThatMatchAndNoMore(t *testing.T) {
	a := startAgents(t)
	var runs []string
	for range 3 {
		runs = append(runs, a.begin(nil))
	}
	other := a.begin(func(r *kagziv1.StartWorkflowRequest) { r.WorkflowType = "other" })
	p := profile(t, "http://"+a.http)
	p.open("/n/default/bulk?do=cancel&q=type%3Aorder")
	p.shows("Cancel 3 runs?", "As of", "kagzi workflow cancel")
	p.picture("bulk")
	late := a.begin(nil) // after the page has counted
	p.click("form.question button[name=act]")
	p.until(`location.pathname.startsWith("/n/default/done/")`)
	p.shows("3")
	p.until(`!document.querySelector("[data-again]")`)
	for _, run := range runs {
		if s := a.run(run).Status; s != kagziv1.WorkflowStatus_WORKFLOW_STATUS_CANCELLED {
			t.Errorf("a run that matched is %s", s)
		}
	}
	for _, run := range []string{other, late} {
		if s := a.run(run).Status; s != kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING {
			t.Errorf("a run that was not counted is %s", s)
		}
	}
}

// pages are those that have no run in their path.
var pages = []string{"/n/default/", "/n/default/runs", "/n/default/workers", "/n/default/queues", "/n/default/schedules",
	"/n/default/hooks", "/admin/namespaces", "/admin/keys", "/admin/audit", "/admin/server", "/n/default/act?do=start",
	"/n/default/act?do=create-schedule", "/n/default/act?do=create-hook", "/n/default/act?do=create-key",
	"/n/default/act?do=edit-namespace&id=default",
	"/n/default/bulk?do=cancel&q=type%3Aorder"}

func TestPageFitsANarrowWindow(t *testing.T) {
	a := startAgents(t)
	run := a.begin(func(r *kagziv1.StartWorkflowRequest) {
		r.ExternalId = strings.Repeat("long-", 50)
		r.Input = &kagziv1.Payload{Data: []byte(`"` + strings.Repeat("word", 500) + `"`)}
	})
	p := profile(t, "http://"+a.http)
	p.size(360, 740)
	for i, path := range append(pages, runPage(run), runPage(run)+"/payloads", runPage(run)+"/events",
		runPage(run)+"/tree", "/n/default/act?do=cancel&id="+run) {
		p.open(path)
		if wide := value[int](p, `document.documentElement.scrollWidth`); wide > 360 {
			t.Errorf("%s is %d wide in a window of 360", path, wide)
		}
		p.picture(fmt.Sprintf("narrow-%02d", i))
	}
}

func TestPageWorksWithoutJavaScript(t *testing.T) {
	a := startAgents(t)
	run := a.begin(nil)
	p := profile(t, "http://"+a.http)
	p.withoutScript()
	p.open("/n/default/runs")
	p.click("table.runs tbody tr a[href]")
	p.at(runPage(run))
	p.open("/n/default/act?do=cancel&id=" + run)
	p.fill("#f-grace", "0s")
	p.click("form.question button[name=act]")
	p.until(`document.readyState === "complete" && location.pathname === ` + quote(runPage(run)))
	p.shows("cancelled")
}

func TestPageShowsHostileTextsAsTexts(t *testing.T) {
	a := startAgents(t)
	markup := map[string]string{
		"script": `<script>alert(1)</script>`, "image": `"><img src=x onerror=alert(1)>`, "svg": `<svg/onload=alert(1)>`,
		"link": `javascript:alert(1)`, "attribute": `" autofocus onfocus=alert(1) x="`, "style": `</style><style>*{display:none}</style>`,
		"comment": `--><script>alert(1)</script><!--`, "entity": `&lt;script&gt;`, "template": `{{alert(1)}}`,
		"title": `</title><script>alert(1)</script>`, "textarea": `</textarea><script>alert(1)</script>`,
		"base": `<base href="http://evil.example/">`, "refresh": `<meta http-equiv=refresh content="0;url=http://evil.example/">`,
	}
	texts := widgettest.Hostile()
	for name, text := range markup {
		texts["markup "+name] = text
	}
	var all strings.Builder
	run := ""
	for name, text := range texts {
		if strings.HasPrefix(name, "control") || strings.HasPrefix(name, "unseen") {
			all.WriteString(text) // one by one they would take too long
			continue
		}
		run = a.hostile(text)
	}
	last := a.hostile(all.String())
	p := profile(t, "http://"+a.http)
	clean := func(path string) {
		t.Helper()
		p.open(path)
		bad := value[string](p, `(document.documentElement.innerText.match(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/) || [""])[0]`)
		if bad != "" {
			t.Errorf("%s shows the character %q", path, bad)
		}
		if n := value[int](p, `document.querySelectorAll("script:not([src^='/assets/']), img:not([src^='/']), base, meta[http-equiv], [onerror], [onload], [onfocus], a[href^='javascript']").length`); n > 0 {
			t.Errorf("%s holds %d elements made of texts", path, n)
		}
	}
	for _, path := range []string{"/n/default/runs", "/n/default/runs?cols=ext%2Cnote%2Ctags%2Cerror", "/n/default/", "/admin/audit?ns=default",
		runPage(run), runPage(run) + "/payloads", runPage(run) + "/events", runPage(last), runPage(last) + "/payloads",
		runPage(last) + "/events", "/n/default/act?do=retry&id=" + run} {
		clean(path)
	}
	p.expect("400")
	p.expect("404")
	for _, text := range markup {
		clean("/n/default/runs?q=" + escaped(text))
		clean("/n/default/act?do=signal&name=" + escaped(text) + "&id=" + run)
	}
}

// hostile makes a run with a text wherever users may write one.
func (a *agents) hostile(text string) string {
	a.t.Helper()
	text = strings.ToValidUTF8(text, "\uFFFD") // others are refused
	run := a.begin(func(r *kagziv1.StartWorkflowRequest) {
		r.Input = &kagziv1.Payload{Data: []byte(quote(text))}
	})
	_, err := a.api.CancelWorkflow(a.as(kagziv1.KeyRole_KEY_ROLE_ADMIN), &kagziv1.CancelWorkflowRequest{
		RunId: run, Reason: text})
	if err != nil {
		a.cancel(run) // a reason may not hold this
	}
	return run
}

func TestPageHasNoBarriers(t *testing.T) {
	script := axe(t)
	a := startAgents(t)
	run, _ := a.failed()
	p := profile(t, "http://"+a.http)
	check := func(path string, rules ...string) {
		t.Helper()
		for _, f := range p.barriers(script, rules...) {
			for _, n := range f.Nodes {
				t.Errorf("%s: %s (%s): %.300s\n%s", path, f.Help, f.Impact, n.HTML, n.FailureSummary)
			}
		}
	}
	for i, path := range append(pages, runPage(run), runPage(run)+"/payloads", runPage(run)+"/events",
		runPage(run)+"/tree", runPage(run)+"/step?name=deliver", "/n/default/act?do=retry&id="+run) {
		p.open(path)
		p.scheme("dark")
		check(path+" in the dark", "color-contrast")
		p.picture(fmt.Sprintf("dark-%02d", i))
		p.scheme("light")
		check(path)
		p.picture(fmt.Sprintf("light-%02d", i))
	}
	a.lock()
	p.open("/")
	p.at("/login?next=%2F")
	check("/login")
}
