package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/scenario"
)

// counted returns a page of a shop with the calls that it makes.
func counted(t *testing.T, w *shop) (*browser, map[string]int) {
	conn := &counting{w.conn, map[string]int{}}
	return visit(t, w, func(o *Options) { o.API = tui.Over(conn) }), conn.calls
}

// formOf returns the fields of a question, as a browser sends them.
func formOf(t *testing.T, page string, more ...string) []string {
	return append([]string{"token", hiddenValue(t, page, "token"), "request", hiddenValue(t, page, "request"),
		"do", hiddenValue(t, page, "do")}, more...)
}

func TestAQuestionSaysWhatFollowsAndTheCommand(t *testing.T) {
	w := newShop()
	run := w.ID(scenario.Signalled)
	page := visit(t, w, nil).get("/n/default/act?do=cancel&grace=2m&id=" + run)
	shows(t, page, "The code of the run gets 2m0s to clean up.", "kagzi workflow cancel "+run+" --grace 2m0s",
		"Leave as is")
	if strings.Index(page, `id="leave"`) > strings.Index(page, `name="act"`) {
		t.Error("the button that acts comes before the one that does nothing")
	}
	if first := strings.Index(page, `type="submit"`); !strings.HasPrefix(page[first:], `type="submit" name="preview"`) {
		t.Error("enter in a field does something else than to show the command")
	}
}

func TestTheCommandOfAQuestionIsQuotedAndVisible(t *testing.T) {
	w := newShop()
	page := visit(t, w, nil).get("/n/default/act?do=terminate&id=" + w.ID(scenario.Signalled) + "&reason=" +
		url.QueryEscape("it's \u202egnp.exe\x1b[2J"))
	shows(t, page, `--reason &#39;it&#39;\&#39;&#39;s \u202egnp.exe\x1b[2J&#39;`)
}

func TestAFormActsOnce(t *testing.T) {
	w := newShop()
	b, calls := counted(t, w)
	run := w.ID(scenario.Failed)
	form := formOf(t, b.get("/n/default/act?do=retry&id="+run+"&from=ship"), "id", run, "from", "ship", "mode",
		retryModes[0])
	answer := b.post("/n/default/act", append(form, "act", "1")...)
	to := answer.Header().Get("Location")
	if answer.Code != http.StatusSeeOther || !strings.HasPrefix(to, "/n/default/runs/") || strings.Contains(to, run) {
		t.Fatalf("the answer is %d to %q, want the page of the new run", answer.Code, to)
	}
	shows(t, b.get(to), "retried as ")
	if again := b.post("/n/default/act", append(form, "act", "1")...).Header().Get("Location"); again != to {
		t.Errorf("a second click leads to %q, want %q", again, to)
	}
	if calls["RetryWorkflow"] != 1 {
		t.Errorf("RetryWorkflow was called %d times, want once", calls["RetryWorkflow"])
	}
	// Another server does not know the form, but the API knows its request.
	other := visit(t, w, nil)
	other.cookies = b.cookies
	if again := other.post("/n/default/act", append(form, "act", "1")...).Header().Get("Location"); again != to {
		t.Errorf("the same form at another server leads to %q, want %q", again, to)
	}
}

func TestEnterInAFieldOnlyShowsTheCommand(t *testing.T) {
	w := newShop()
	b, calls := counted(t, w)
	run := w.ID(scenario.Signalled)
	form := formOf(t, b.get("/n/default/act?do=cancel&id="+run), "id", run, "reason", "too late", "preview", "1")
	answer := b.post("/n/default/act", form...)
	shows(t, answer.Body.String(), "--reason &#39;too late&#39;")
	if answer.Code != http.StatusOK || calls["CancelWorkflow"] != 0 {
		t.Errorf("the answer is %d after %d calls, want the question again", answer.Code, calls["CancelWorkflow"])
	}
}

func TestAFormOfAnotherSiteOrSessionDoesNothing(t *testing.T) {
	w := newShop()
	run := w.ID(scenario.Signalled)
	for name, change := range map[string]func(b *browser, form url.Values){
		"no token":      func(_ *browser, form url.Values) { form.Del("token") },
		"another token": func(_ *browser, form url.Values) { form.Set("token", formToken("another session")) },
		"another session": func(b *browser,
			_ url.Values) {
			b.cookies = map[string]string{"kagzi-50052": "another session"}
		},
		"no cookie":         func(b *browser, _ url.Values) { b.cookies = map[string]string{} },
		"of another site":   func(b *browser, _ url.Values) { b.header.Set("Sec-Fetch-Site", "cross-site") },
		"of another port":   func(b *browser, _ url.Values) { b.header.Set("Sec-Fetch-Site", "same-site") },
		"from an address":   func(b *browser, _ url.Values) { b.header.Set("Sec-Fetch-Site", "none") },
		"of another origin": func(b *browser, _ url.Values) { b.header.Set("Origin", "http://evil.example") },
		"of no origin":      func(b *browser, _ url.Values) { b.header.Set("Origin", "null") },
	} {
		b, calls := counted(t, w)
		page := b.get("/n/default/act?do=cancel&id=" + run)
		form := url.Values{"id": {run}, "do": {"cancel"}, "token": {hiddenValue(t, page, "token")},
			"request": {hiddenValue(t, page, "request")}}
		change(b, form)
		if code := b.do("POST", "/n/default/act", form.Encode()).Code; code != http.StatusForbidden ||
			calls["CancelWorkflow"] > 0 {
			t.Errorf("%s: the answer is %d after %d calls, want 403", name, code, calls["CancelWorkflow"])
		}
	}
	b, calls := counted(t, w)
	b.header.Set("Origin", "http://127.0.0.1:50052") // a browser that does not say where a form was
	b.post("/n/default/act", formOf(t, b.get("/n/default/act?do=cancel&id="+run), "id", run)...)
	if calls["CancelWorkflow"] != 1 {
		t.Error("a form of the page itself did nothing")
	}
}

func TestAReadOnlyPageOffersAndDoesNothing(t *testing.T) {
	w := newShop()
	conn := &counting{w.conn, map[string]int{}}
	b := visit(t, w, func(o *Options) { o.ReadOnly, o.API, o.Banner = true, tui.Over(conn), "a copy of <b>kagzi.db" })
	for name, path := range pagesOf(w) {
		answer := b.do("GET", path, "")
		page := answer.Body.String()
		asks := strings.HasPrefix(name, "ask-") || name == "bulk"
		if asks != (answer.Code == http.StatusForbidden) {
			t.Errorf("%s = %d", path, answer.Code)
		}
		if strings.Contains(page, "/act") || strings.Contains(page, "/bulk") || strings.Contains(page,
			`method="post"`) {
			t.Errorf("%s offers an action", path)
		}
		shows(t, page, "a copy of &lt;b&gt;kagzi.db")
	}
	cookie := b.cookies["kagzi-50052"]
	for _, path := range []string{"/n/default/act", "/n/default/bulk"} {
		answer := b.post(path, "token", formToken(cookie), "do", "cancel", "id", w.ID(scenario.Signalled), "request",
			"x")
		if answer.Code != http.StatusForbidden {
			t.Errorf("POST %s = %d, want 403", path, answer.Code)
		}
	}
	for method := range conn.calls {
		if !reads.MatchString(method) {
			t.Errorf("a read-only page called %s", method)
		}
	}
}

// keyed is a server whose caller has a key with a role.
type keyed struct {
	tui.API
	role kagziv1.KeyRole
}

func (k keyed) WhoAmI(context.Context, *kagziv1.WhoAmIRequest, ...grpc.CallOption) (*kagziv1.WhoAmIResponse, error) {
	return &kagziv1.WhoAmIResponse{Key: &kagziv1.Key{Name: "ada", Role: k.role}, KeysRequired: true}, nil
}

func TestARoleHidesWhatItMayNotDo(t *testing.T) {
	w := newShop()
	run := "/n/default/runs/" + w.ID(scenario.Signalled)
	for role, able := range map[kagziv1.KeyRole]struct{ cancel, terminate, keys bool }{
		kagziv1.KeyRole_KEY_ROLE_ADMIN: {true, true, true}, kagziv1.KeyRole_KEY_ROLE_OPERATOR: {true, true, false},
		kagziv1.KeyRole_KEY_ROLE_CLIENT: {true, false, false}, kagziv1.KeyRole_KEY_ROLE_VIEWER: {false, false, false},
	} {
		b := visit(t, w, func(o *Options) { o.API = keyed{tui.Over(w.conn), role} })
		page := b.get(run)
		for do, want := range map[string]bool{"cancel": able.cancel, "terminate": able.terminate} {
			if got := strings.Contains(page, "do="+do+"&amp;"); got != want {
				t.Errorf("%s: the page offers %s: %t, want %t", role, do, got, want)
			}
			code := b.do("GET", "/n/default/act?do="+do+"&id="+w.ID(scenario.Signalled), "").Code
			if (code == http.StatusOK) != want {
				t.Errorf("%s: the question about %s = %d, want it: %t", role, do, code, want)
			}
		}
		if got := strings.Contains(page, `href="/admin/keys"`); got != able.keys {
			t.Errorf("%s: the page leads to keys: %t, want %t", role, got, able.keys)
		}
	}
}

func TestABulkActionNamesItsRunsAndDoesNoMore(t *testing.T) {
	w := newShop()
	b, calls := counted(t, w)
	page := b.get("/n/default/bulk?do=cancel&q=type:thumbnail")
	shows(t, page, "type:thumbnail", "As of", "2026-11-20 09:00:00 UTC",
		"kagzi workflow cancel --query &#39;status in (&#34;PENDING&#34;, &#34;RUNNING&#34;, &#34;SLEEPING&#34;) and type = &#34;thumbnail&#34;")
	count := hiddenValue(t, page, "count")
	send := func(count string) string {
		page := b.get("/n/default/bulk?do=cancel&q=type:thumbnail")
		answer := b.post("/n/default/bulk", formOf(t, page, "q", "type:thumbnail", "asof", hiddenValue(t, page, "asof"),
			"count", count, "act", "1")...)
		if answer.Code != http.StatusSeeOther {
			t.Fatalf("the answer is %d %s", answer.Code, answer.Body)
		}
		return answer.Header().Get("Location")
	}
	refused := b.do("GET", send("3"), "")
	if refused.Code != http.StatusConflict {
		t.Errorf("more runs than were shown: %d, want 409", refused.Code)
	}
	shows(t, refused.Body.String(), count+" runs match now, and 3 were shown")
	if open := w.open(t, "thumbnail"); open == 0 {
		t.Fatal("runs were cancelled although more matched than were shown")
	}
	shows(t, b.get(send(count)), "Done", count+" of "+count+" done, 0 failed.")
	if open := w.open(t, "thumbnail"); open != 0 {
		t.Errorf("%d runs are open after the action", open)
	}
	if calls["CancelWorkflow"] != 0 {
		t.Error("runs were cancelled one by one")
	}
	if code := b.do("GET", "/n/default/bulk?do=cancel&q=type:thumb*", "").Code; code != http.StatusBadRequest {
		t.Errorf("a filter that the server does not know = %d, want 400", code)
	}
}

func TestABulkActionTakesTheFilterLanguage(t *testing.T) {
	w := newShop()
	b, _ := counted(t, w)
	q := `type = "thumb*" or type = "none-of-them"`
	page := b.get("/n/default/bulk?do=cancel&q=" + url.QueryEscape(q))
	shows(t, page, "and (type = &#34;thumb*&#34; or type = &#34;none-of-them&#34;)")
	others := w.open(t, "order")
	answer := b.post("/n/default/bulk", formOf(t, page, "q", q, "asof", hiddenValue(t, page, "asof"),
		"count", hiddenValue(t, page, "count"), "act", "1")...)
	if answer.Code != http.StatusSeeOther {
		t.Fatalf("the answer is %d %s", answer.Code, answer.Body)
	}
	shows(t, b.get(answer.Header().Get("Location")), "Done")
	if open := w.open(t, "thumbnail"); open != 0 {
		t.Errorf("%d runs are open after the action", open)
	}
	if open := w.open(t, "order"); open != others {
		t.Errorf("%d runs of another type are open, want %d", open, others)
	}
}

// open returns how many runs of a type have not ended.
func (w *shop) open(t *testing.T, kind string) int {
	t.Helper()
	answer, err := tui.Over(w.conn).ListWorkflows(t.Context(),
		&kagziv1.ListWorkflowsRequest{WorkflowTypes: []string{kind},
			Statuses: []kagziv1.WorkflowStatus{kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING}})
	if err != nil {
		t.Fatal(err)
	}
	return len(answer.GetWorkflows())
}

func TestAFormThatIsWrongIsShownAgain(t *testing.T) {
	w := newShop()
	b, calls := counted(t, w)
	for problem, fields := range map[string][]string{
		"Input: want JSON":        {"type", "order", "input", "{x"},
		"Priority: want a number": {"type", "order", "priority", "high"},
		"Type: enter a value":     {"type", " "},
		"external_id":             {"type", "order", "external", strings.Repeat("x", 300)}, // by the server
	} {
		answer := b.post("/n/default/act", formOf(t, b.get("/n/default/act?do=start"), append(fields, "act",
			"1")...)...)
		if answer.Code != http.StatusBadRequest || !strings.Contains(answer.Body.String(), problem) {
			t.Errorf("%v: %d, want the problem %q", fields, answer.Code, problem)
		}
	}
	answer := b.post("/n/default/act", formOf(t, b.get("/n/default/act?do=start"), "type", "order", "input",
		`{"n":3544790567247868102}`, "act", "1")...)
	to := answer.Header().Get("Location")
	if answer.Code != http.StatusSeeOther || calls["StartWorkflow"] != 2 {
		t.Fatalf("the answer is %d to %q after %d calls", answer.Code, to, calls["StartWorkflow"])
	}
	path, _, _ := strings.Cut(to, "?")
	shows(t, b.get(path+"/payloads"), "3544790567247868102")
}

func TestASchedulesFormShowsItsTicksAndChangesWhatDiffers(t *testing.T) {
	w := newShop()
	b := visit(t, w, nil)
	page := b.post("/n/default/act", formOf(t, b.get("/n/default/act?do=create-schedule"), "type", "order", "cron",
		"0 9 * * 1-5",
		"zone", "Europe/Berlin", "name", "morning", "overlap", "skip", "preview", "1")...).Body.String()
	shows(t, page, "Fires Monday 23 November 2026, 09:00 CET", "kagzi schedule create order --cron")
	answer := b.post("/n/default/act", formOf(t, page, "type", "order", "cron", "0 9 * * 1-5", "zone", "Europe/Berlin",
		"name", "morning", "overlap", "skip", "act", "1")...)
	to := answer.Header().Get("Location")
	if answer.Code != http.StatusSeeOther || !strings.HasPrefix(to, "/n/default/schedules/") {
		t.Fatalf("the answer is %d to %q: %s", answer.Code, to, answer.Body)
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(to, "/n/default/schedules/"), "?")
	page = b.get("/n/default/act?do=edit-schedule&id=" + id)
	shows(t, page, `value="0 9 * * 1-5"`, `value="morning"`, "Fill in the fields")
	page = b.post("/n/default/act", formOf(t, page, "id", id, "type", "order", "cron", "0 10 * * *", "zone",
		"Europe/Berlin",
		"name", "morning", "overlap", "skip", "catchup", "100", "queue", "default", "preview", "1")...).Body.String()
	shows(t, page, "kagzi schedule update "+id+" --cron &#39;0 10 * * *&#39;", "10:00 CET")
	wrong := b.post("/n/default/act", formOf(t, page, "id", id, "type", "order", "cron", "61 * * * *", "act", "1")...)
	if wrong.Code != http.StatusBadRequest || !strings.Contains(wrong.Body.String(), "cron_expr") {
		t.Errorf("a wrong expression = %d", wrong.Code)
	}
}

// slow is a server that does not answer in time.
type slow struct{ tui.API }

func (slow) ListWorkflows(ctx context.Context, _ *kagziv1.ListWorkflowsRequest,
	_ ...grpc.CallOption) (*kagziv1.ListWorkflowsResponse, error) {
	if at, limited := ctx.Deadline(); !limited || time.Until(at) > callTime {
		return nil, status.Error(codes.Internal, "the call has no time limit")
	}
	return nil, status.Error(codes.DeadlineExceeded, "context deadline exceeded")
}

func TestAQueryThatTakesLongIsToBeNarrowed(t *testing.T) {
	w := newShop()
	b := visit(t, w, func(o *Options) { o.API = slow{tui.Over(w.conn)} })
	shows(t, b.do("GET", "/n/default/runs?q=type:order", "").Body.String(), "narrow it", `value="type:order"`)
}

// failing is a server that fails the first cancellations.
type failing struct {
	tui.API
	left *int
}

func (f failing) CancelWorkflow(ctx context.Context, r *kagziv1.CancelWorkflowRequest,
	o ...grpc.CallOption) (*kagziv1.CancelWorkflowResponse, error) {
	if *f.left--; *f.left >= 0 {
		return nil, status.Error(codes.Unavailable, "the server is stopping")
	}
	return f.API.CancelWorkflow(ctx, r, o...)
}

func TestAFormThatFailedMayBeSentAgain(t *testing.T) {
	w := newShop()
	left := 1
	b := visit(t, w, func(o *Options) { o.API = failing{tui.Over(w.conn), &left} })
	run := w.ID(scenario.Signalled)
	form := formOf(t, b.get("/n/default/act?do=cancel&id="+run), "id", run, "act", "1")
	failed := b.post("/n/default/act", form...).Header().Get("Location")
	shows(t, b.get(failed), "1 of 1 failed", "it may have worked (the server is stopping)")
	to := b.post("/n/default/act", form...).Header().Get("Location")
	shows(t, b.get(to), "cancel requested")
	if again := b.post("/n/default/act", form...).Header().Get("Location"); again != to || left != -1 {
		t.Errorf("after it worked the form leads to %q, want %q, and %d calls were made", again, to, 1-left)
	}
}
