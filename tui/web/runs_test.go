package web

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/scenario"
)

func TestTheListSaysWhatIsWrongWithAFilter(t *testing.T) {
	b := visit(t, newShop(), nil)
	for filter, problem := range map[string]string{
		"status:faild": "FAILED", "stats:failed": "status:", `type:"x`: "closing", "schedule:nobody": "nobody",
		"since:soon": "a time",
	} {
		answer := b.do("GET", "/n/default/runs"+queryOf("q", filter), "")
		page := answer.Body.String()
		if answer.Code != http.StatusBadRequest || !strings.Contains(strings.ToLower(page), strings.ToLower(problem)) ||
			!strings.Contains(page, `id="wrong"`) {
			t.Errorf("%q = %d without %q", filter, answer.Code, problem)
		}
	}
}

func TestTheListIsReadByCursorsAndCountsOnlyWhenAsked(t *testing.T) {
	w := newShop()
	b, calls := counted(t, w)
	seen := map[string]bool{}
	next, pages := "/n/default/runs?q=status:completed", 0
	for ; next != ""; pages++ {
		page := b.get(next)
		for _, m := range regexp.MustCompile(`data-key="([^"]+)"`).FindAllStringSubmatch(page, -1) {
			if seen[m[1]] {
				t.Fatalf("%s is on two pages", m[1])
			}
			seen[m[1]] = true
		}
		link := regexp.MustCompile(`rel="next" href="([^"]+)"`).FindStringSubmatch(page)
		if next = ""; link != nil {
			next = strings.ReplaceAll(link[1], "&amp;", "&")
		}
	}
	if pages < 3 || calls["ListWorkflows"] != pages {
		t.Errorf("%d pages were read by %d calls", pages, calls["ListWorkflows"])
	}
	total := regexp.MustCompile(`([0-9 ]+) runs</span>`).FindStringSubmatch(b.get("/n/default/runs?q=status:completed&count=1"))
	if total == nil || strings.ReplaceAll(total[1], " ", "") != strconv.Itoa(len(seen)) {
		t.Errorf("the count is %v, want %d", total, len(seen))
	}
}

func TestAListThatCountsFromNowIsReadToItsEnd(t *testing.T) {
	w := newShop()
	now := w.box.Now()
	b := visit(t, w, func(o *Options) {
		o.Now = func() time.Time { now = now.Add(7 * time.Second); return now }
	})
	next, pages := "/n/default/runs?q=since:240h", 0
	for ; next != ""; pages++ {
		link := regexp.MustCompile(`rel="next" href="([^"]+)"`).FindStringSubmatch(b.get(next))
		if next = ""; link != nil {
			next = strings.ReplaceAll(link[1], "&amp;", "&")
		}
	}
	if pages < 3 {
		t.Errorf("%d pages were read, want some", pages)
	}
	if page := b.get("/n/default/runs?q=type:order*"); strings.Contains(page, "at=") {
		t.Error("a filter that does not depend on the time has one in its links")
	}
}

func TestAHighCountIsCapped(t *testing.T) {
	w := newShop()
	b := visit(t, w, func(o *Options) { o.API = crowded{tui.Over(w.conn)} })
	shows(t, b.get("/n/default/runs?count=1"), "10 000+ runs")
}

// crowded is a server with very many runs.
type crowded struct{ tui.API }

func (c crowded) ListWorkflows(ctx context.Context, r *kagziv1.ListWorkflowsRequest,
	o ...grpc.CallOption) (*kagziv1.ListWorkflowsResponse, error) {
	answer, err := c.API.ListWorkflows(ctx, r, o...)
	answer.GetPage().TotalCount = 12_345_678
	return answer, err
}

func TestColumnsAndStatusAreInTheAddress(t *testing.T) {
	b := visit(t, newShop(), nil)
	page := b.get("/n/default/runs?q=status:failed+type:order&cols=type,tags")
	shows(t, page, ">Tags</th>", `href="/n/default/runs?q=status%3Acompleted+type%3Aorder&amp;cols=type%2Ctags"`,
		"customer=")
	if strings.Contains(page, ">Queue</th>") || strings.Contains(page, "thumbnail") {
		t.Error("the page shows more than its address asks for")
	}
}

func TestAFilterThatTheServerDoesNotKnowIsMatchedHere(t *testing.T) {
	b := visit(t, newShop(), nil)
	page := b.get("/n/default/runs?q=" + "type:thumb*")
	shows(t, page, "thumbnail", "runs that were read")
	if strings.Contains(page, "invoice.send") || strings.Contains(page, "All that match") {
		t.Error("the page shows other runs, or offers to act on all")
	}
}

func TestPayloadsAreShownInPartAndDownloadedAsBytes(t *testing.T) {
	w := newShop()
	b := visit(t, w, nil)
	run := "/n/default/runs/" + w.ID(scenario.Big)
	page := b.get(run + "/payloads")
	shows(t, page, "the first 64 KiB are shown")
	if len(page) > 200<<10 {
		t.Errorf("the page has %d bytes", len(page))
	}
	answer := b.do("GET", run+"/download?what=input", "")
	if answer.Body.Len() < 256<<10 || !json.Valid(answer.Body.Bytes()) {
		t.Errorf("the download has %d bytes", answer.Body.Len())
	}
	header := answer.Header()
	if header.Get("Content-Type") != "application/octet-stream" || header.Get("X-Content-Type-Options") != "nosniff" ||
		header.Get("Content-Disposition") != `attachment; filename="`+w.ID(scenario.Big)+`-input.json"` {
		t.Errorf("the download has %v", header)
	}
	step := "/n/default/runs/" + w.ID(scenario.Failed) + "/download?what=output&step="
	id := regexp.MustCompile(`what=output&amp;step=([0-9a-f-]+)`).FindStringSubmatch(b.get("/n/default/runs/" +
		w.ID(scenario.Failed) + "/step?name=validate"))[1]
	if text := b.get(step + id); text != `{"done":true}` {
		t.Errorf("the output of a step is %q", text)
	}
	if code := b.do("GET", run+"/download?what=output&step="+id, "").Code; code != http.StatusNotFound {
		t.Errorf("the step of another run = %d, want 404", code)
	}
}

// redacted is a server whose caller sees no payloads; sealed has them encrypted.
type redacted struct {
	tui.API
	metadata map[string]string
}

func (r redacted) GetWorkflow(ctx context.Context, request *kagziv1.GetWorkflowRequest,
	o ...grpc.CallOption) (*kagziv1.GetWorkflowResponse, error) {
	answer, err := r.API.GetWorkflow(ctx, request, o...)
	answer.GetWorkflow().Input = &kagziv1.Payload{Data: []byte("0123"), Metadata: r.metadata}
	return answer, err
}

func TestPayloadsThatCannotBeReadSaySo(t *testing.T) {
	w := newShop()
	run := "/n/default/runs/" + w.ID(scenario.Failed)
	b := visit(t, w, func(o *Options) { o.API = redacted{tui.Over(w.conn), map[string]string{withheld: "4711"}} })
	shows(t, b.get(run+"/payloads"), "4711 bytes, withheld: the role of your key does not see payloads.")
	if code := b.do("GET", run+"/download?what=input", "").Code; code != http.StatusForbidden {
		t.Errorf("the download = %d, want 403", code)
	}
	b = visit(t, w, func(o *Options) {
		o.API = redacted{tui.Over(w.conn), map[string]string{"encoding": "binary/encrypted",
			"encryption-key": "orders-2026"}}
	})
	shows(t, b.get(run+"/payloads"), "key=orders-2026", "<code>binary/encrypted</code>")
}

func TestLiveTellsWhatChanges(t *testing.T) {
	w := newShop()
	b := visit(t, w, nil)
	server := httptest.NewServer(b.handler)
	defer server.Close()
	answer, err := http.Get(server.URL + "/live?ns=default")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if kind := answer.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Fatalf("the answer is %d %s", answer.StatusCode, kind)
	}
	lines := bufio.NewScanner(answer.Body)
	data := func() string {
		for lines.Scan() {
			if text, found := strings.CutPrefix(lines.Text(), "data: "); found {
				return text
			}
		}
		t.Fatal("the stream has ended")
		return ""
	}
	page := b.get("/n/default/runs")
	var greeting hello
	if err := json.Unmarshal([]byte(data()), &greeting); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page, `data-build="`+greeting.Build+`"`) || !slices.Equal(greeting.Live, []string{"default"}) {
		t.Errorf("the stream begins with %+v, which is not of the page", greeting)
	}
	run := w.ID(scenario.Signalled)
	if _, err := tui.Over(w.conn).CancelWorkflow(t.Context(), &kagziv1.CancelWorkflowRequest{RunId: run}); err != nil {
		t.Fatal(err)
	}
	var told news
	for !told.Lists && !strings.Contains(strings.Join(told.Runs, " "), run) {
		if err := json.Unmarshal([]byte(data()), &told); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOnePlaceDoesNotTakeAllStreams(t *testing.T) {
	s := streams{callers: map[string]int{}}
	for range mostCallerStreams {
		if !s.enter("one") {
			t.Fatal("a stream is refused")
		}
	}
	if s.enter("one") || !s.enter("two") {
		t.Error("one caller has more streams than it may, or keeps others out")
	}
	for range mostCallerStreams {
		s.leave("one")
	}
	if !s.enter("one") || len(s.callers) != 2 {
		t.Error("streams that ended are still counted")
	}
}
